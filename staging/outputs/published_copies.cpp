#include "staging/outputs/published_copies.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// An NFS client may know a name that another host has replaced or deleted meanwhile; the second call asks the
// server.
Result<ManifestReader> open_manifest(const std::filesystem::path& path) {
  auto manifest = ManifestReader::open(path);
  return !manifest && manifest.error().number == ESTALE ? ManifestReader::open(path) : std::move(manifest);
}

using Found = Result<std::optional<PublishedCopy>>;

// An answer other than "it does not exist" says nothing about the copy: without it the list would look whole.
Found none_or(Error error) {
  if (error.kind == Errc::NotFound) return std::optional<PublishedCopy>();
  if (error.kind == Errc::Denied)
    error.hint =
        "the folder on this host has to belong to the user who sent the copies, or make them readable";
  if (error.number == 0) error.hint = "it is damaged: delete that copy and its manifest";
  return fail(std::move(error));
}

// When the checkpoint's proof was written, 0 without one; `manifest` is behind its root. Not read to its end:
// it may have a line for each of 100,000 files.
std::int64_t proof_in(ManifestReader& manifest, const std::vector<std::string>& names) {
  for (auto entry = manifest.next(); entry; entry = manifest.next()) {
    if (std::ranges::find(names, entry->path.view()) != names.end()) return entry->mtime_ns;
  }
  return 0;
}

// None if it was not published there. Its time is that of the manifest: the volume's changes with a file that
// is added to it, and with a delegation that the NFS server recalls.
Found copy_at(const Destination& destination, const std::vector<std::string>& proofs) {
  auto manifest = manifest_of_published(destination);
  if (!manifest) return none_or(manifest.error());
  if (!*manifest) return std::optional<PublishedCopy>();
  const auto root = (*manifest)->next();
  std::filesystem::path source = (*manifest)->header().source;
  if (!source.has_filename()) source = source.parent_path();
  if (root) {
    const std::int64_t proof_ns = proofs.empty() ? 0 : proof_in(**manifest, proofs);
    return std::optional(PublishedCopy{destination.name, root->mtime_ns, source.filename(), proof_ns});
  }
  if (auto read = (*manifest)->error(); !read) {
    read.error().what = "reading " + shown_path(destination.manifest()) + ": " + read.error().what;
    return none_or(std::move(read.error()));
  }
  return std::optional<PublishedCopy>();
}

Result<std::vector<PublishedCopy>> copies_in(const std::filesystem::path& folder,
                                             const std::vector<std::string>& proofs, NotListed* not_listed) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  std::vector<PublishedCopy> copies;
  std::error_code error;
  for (const std::string& name : *names) {
    const auto replaced = not_listed == nullptr ? std::nullopt : being_replaced(folder, name);
    if (replaced)
      not_listed->unreadable.push_back(
          {replaced->name, shown_path(replaced->path()) + " is being replaced, or that was interrupted"});
    if (name.starts_with('.')) continue;
    auto copy = copy_at({folder, name}, proofs);
    if (!copy && not_listed == nullptr) return copy.take_error();
    if (!copy) {
      not_listed->unreadable.push_back({name, copy.error().message()});
    } else if (*copy) {
      copies.push_back(std::move(**copy));
    } else if (not_listed != nullptr &&
               !std::filesystem::is_symlink(std::filesystem::symlink_status(folder / name, error))) {
      not_listed->unknown.push_back(name);  // links, as our pointer `latest`, are no copies
    }
  }
  return copies;
}

using Counts = std::function<bool(const ManifestReader&)>;
using MayCount = std::function<bool(const std::filesystem::path&)>;

constexpr auto kAny = [](const auto&) { return true; };

// `root`: of the copy. `may_count`: whether one at that path, or in the folder there, that can't be read
// might count.
Result<std::optional<ManifestReader>> find_manifest(const Destination& destination, const RootIdentity& root,
                                                    const Counts& counts, const MayCount& may_count) {
  const std::filesystem::path named = destination.manifest(), partial = destination.partial() / "manifest";
  for (const auto& path : {named, partial, named}) {  // it may get its name meanwhile
    auto manifest = open_manifest(path);
    if (!manifest && manifest.error().kind == Errc::NotFound) continue;
    if (!manifest && !may_count(path == partial ? destination.partial() : path)) continue;
    if (!manifest) return manifest.take_error();
    if (!is_same_object(manifest->header().root, root)) continue;
    if (!counts(*manifest)) continue;
    // The copy's own name may not be durable yet.
    auto flushed = path == partial ? flush_folder(destination.folder) : Result<>();
    if (!flushed) return flushed.take_error();
    return std::optional(std::move(*manifest));
  }
  return std::optional<ManifestReader>();
}

}  // namespace

Result<std::optional<ManifestReader>> manifest_of_published(const Destination& destination) {
  const auto identity = identity_of(destination.path());
  if (!identity && identity.error().kind == Errc::NotFound) return std::optional<ManifestReader>();
  if (!identity) return identity.take_error();
  // Otherwise any user who may create files there could hide which is the highest.
  const auto may_be_trusted = [&](const std::filesystem::path& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) != 0 || is_trusted(destination.folder, info.st_uid);
  };
  return find_manifest(
      destination, *identity,
      [&](const ManifestReader& manifest) { return is_trusted(destination, manifest); }, may_be_trusted);
}

Result<std::vector<PublishedCopy>> published_copies(const std::filesystem::path& folder,
                                                    NotListed* not_listed) {
  auto copies = copies_in(folder, {}, not_listed);
  if (copies) {
    std::ranges::sort(*copies, [](const PublishedCopy& a, const PublishedCopy& b) {
      return a.mtime_ns != b.mtime_ns ? a.mtime_ns > b.mtime_ns : a.name > b.name;
    });
  }
  return copies;
}

Result<std::vector<PublishedCopy>> published_checkpoints(const std::filesystem::path& folder,
                                                         const std::optional<Completeness>& rule,
                                                         NotListed* not_listed) {
  const auto proofs = rule ? proofs_in(*rule) : std::vector<std::string>();
  auto copies = copies_in(folder, proofs, not_listed);
  if (!copies) return copies;
  std::vector<PublishedCopy> aliases;
  const auto kind = [&](const std::string& name) {
    std::error_code error;  // nothing may have the name now
    const bool is_folder =
        !std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name, error));
    return kind_of(name, is_folder, rule->rule);
  };
  const auto has_proof = [&](const std::string& name) { return proved_at(folder / name, *rule).has_value(); };
  const auto is_other = [&](const std::string& name) {
    return kind(name) != EntryKind::Checkpoint && kind(name) != EntryKind::Alias;
  };
  if (rule) {
    std::erase_if(*copies, [&](const PublishedCopy& one) {
      const bool is_proved = kind(one.name) == EntryKind::Unlikely && one.proof_ns != 0;
      if (one.source_name != one.name || (is_other(one.name) && !is_proved)) return true;
      if (kind(one.name) == EntryKind::Alias) aliases.push_back(one);
      return kind(one.name) == EntryKind::Alias;
    });
  }
  if (rule && not_listed != nullptr) {
    std::erase_if(not_listed->unreadable, [&](const auto& one) { return is_other(one.name); });
    std::erase_if(not_listed->unknown, [&](const std::string& name) {
      const bool may_be_one = proofs.empty() ? step_of(name).has_value() : has_proof(name);
      return is_other(name) || !may_be_one;
    });
  }
  add_aliases(*copies, aliases, [](const PublishedCopy&) { return true; });
  return copies;
}

std::optional<WholeCopy> check_whole(const std::filesystem::path& folder, const PublishedCopy& copy) {
  const auto tree = open_tree(folder / copy.name);
  auto manifest = manifest_of_published({folder, copy.name});
  if (!tree || !manifest || !*manifest) return std::nullopt;
  const auto lost =
      compare_metadata(*tree, **manifest, 1, kNeverStopped, FileTimes::Ignored, Comparison::Whole);
  if (!lost || !lost->empty() || !(*manifest)->rewind()) return std::nullopt;
  WholeCopy whole(copy);
  whole.copy_.written = written_of(**manifest);
  return whole;
}

std::optional<std::string> published_hash(const Tree& tree, const StopFlag& stop) {
  const UniqueFd above(
      ::openat(tree.folder.get(), tree.file.empty() ? ".." : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Destination destination{held_path(above), std::filesystem::path(tree.root()).filename()};
  // Of what was opened: where others may write, they can put another copy, and a manifest, in its place.
  const std::filesystem::path opened = held_path(tree.folder) / (tree.file.empty() ? "." : tree.file);
  struct stat root {};
  if (!above || destination.name.empty() || ::lstat(opened.c_str(), &root) != 0) return std::nullopt;
  const auto identity = identity_of(opened);
  if (!identity) return std::nullopt;
  const auto counts = [&](const ManifestReader& manifest) {
    return manifest.owner() == root.st_uid || manifest.owner() == uid_t{0};
  };
  auto found = find_manifest(destination, *identity, counts, kAny);
  if (!found || !*found) return std::nullopt;
  ManifestReader& manifest = **found;
  const auto differences = compare_metadata(tree, manifest, 1, stop, FileTimes::Ignored);
  if (!differences || !differences->empty() || !manifest.rewind()) return std::nullopt;
  // Those bits are not copied everywhere, and the hash is of them too.
  while (const auto entry = manifest.next()) {
    if (entry->type == EntryType::File && (entry->mode & (S_ISUID | S_ISGID)) != 0) return std::nullopt;
  }
  if (!manifest.rewind()) return std::nullopt;
  const auto summary = summary_of(manifest);
  return summary ? std::optional(summary->hash) : std::nullopt;
}

Result<CopyReport> verify_published(const std::filesystem::path& path, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop) {
  const auto destination = destination_of(path);
  if (!destination) return destination.take_error();
  const std::string shown = shown_path(path);
  const auto identity = identity_of(destination->path());
  if (!identity) return fail_with(identity.error(), "verifying " + shown);
  // Of any user: who asks wants to know whether it is what its sender published.
  auto manifest = find_manifest(*destination, *identity, kAny, kAny);
  if (!manifest || !*manifest) {
    return fail(Errc::NotFound, "verifying " + shown + ": it has no manifest of its own",
                "only copies published by stage-out can be compared");
  }
  const auto copy = open_tree(destination->path());
  if (!copy) return copy.take_error();
  Monitor monitor(progress);
  const auto summary = verify_copy(*copy, **manifest, options, monitor, stop, FileTimes::Ignored);
  if (!summary) return summary.take_error();
  return report_of(*summary, monitor);
}

}  // namespace spark::staging
