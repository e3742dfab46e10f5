#include "staging/cache/place/carrier.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/place/begun.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

namespace fs = std::filesystem;

Result<Carried> Carrier::carry(const std::string& dataset, const Destination& from, const fs::path& filling,
                               const Destination& to) {
  auto manifest = ManifestReader::open(from.manifest());
  if (!manifest) return without(std::move(manifest.error()));
  const ProgressSink progress = [&](const CopyProgress& now) { hooks_.progress(dataset, now); };
  const auto published = [&](Bytes bytes) -> Result<Carried> {
    auto done = publish(filling, *manifest, to);
    return done ? Result<Carried>(Carried{bytes, {}}) : done.take_error();
  };
  // Complete since a call that was interrupted then. There may be no room for a second one.
  if (identity_of(filling)) {
    auto same = verify(filling, *manifest, progress);
    if (same) return published(0);
    if (!is_damage(same.error())) return same.take_error();
    if (auto removed = remove_tree(filling.parent_path(), filling.filename()); !removed)
      return removed.take_error();
    if (auto again = manifest->rewind(); !again) return again.take_error();
  }
  if (auto there = open_tree(from.path()); !there) return without(std::move(there.error()));
  auto copied = copy_with(hooks_.copy, from.path(), filling, options_, progress, stop_);
  if (!copied) return copied.error().is_of_source ? without(std::move(copied.error())) : copied.take_error();
  if (auto go_on = after(hooks_.copy.step, "filled"); !go_on) return go_on.take_error();
  if (auto same = verify(filling, *manifest, progress); !same) {
    if (auto removed = remove_tree(filling.parent_path(), filling.filename()); !removed)
      return removed.take_error();
    // What the new drive can't read back says nothing about the copy.
    if (same.error().kind != Errc::Mismatch) return same.take_error();
    return without(std::move(same.error()));
  }
  return published(copied->bytes);
}

// Of a drive that is gone, each copy looks damaged.
Result<Carried> Carrier::without(Error error) const {
  if (!is_damage(error) && error.kind != Errc::NotFound) return fail(std::move(error));
  if (auto there = from_.check_answers(); !there) return there.take_error();
  return Carried{0, error.message()};
}

Result<> Carrier::verify(const fs::path& copy, ManifestReader& manifest, const ProgressSink& progress) {
  const auto tree = open_tree(copy);
  if (!tree) return tree.take_error();
  Monitor monitor(progress);
  auto same = verify_copy(*tree, manifest, options_, monitor, stop_);
  return same ? manifest.rewind() : same.take_error();
}

// Under its manifest: that of the source, so that a later staging compares the source as before.
Result<> Carrier::publish(const fs::path& filling, ManifestReader& reader, const Destination& to) {
  auto entries = entries_of(reader);
  if (!entries) return entries.take_error();
  Manifest manifest{reader.header(), std::move(*entries)};
  const auto identity = identity_of(filling);
  if (!identity) return identity.take_error();
  manifest.root = *identity;
  if (::mkdir(to.folder.c_str(), kEntered) != 0 && errno != EEXIST)
    return fail_errno(errno, "making folder " + printable(to.folder.native()));
  if (auto removed = remove_tree(to.folder, to.name); !removed) return removed;
  if (auto written = write_manifest(to.manifest(), manifest); !written) return written;
  if (auto go_on = after(hooks_.copy.step, "entered"); !go_on) return go_on;
  if (auto renamed = rename_to_new(filling, to.path()); !renamed) return renamed;
  if (auto go_on = after(hooks_.copy.step, "carried"); !go_on) return go_on;
  if (auto flushed = flush_folder(to.folder); !flushed) return flushed;
  return flush_folder(to_.data());
}

}  // namespace spark::staging
