#include "staging/copy/partial/publish.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/access/named_path.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr uid_t kNobody = 65534;

bool is_there(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// Only root can move a folder that its owner may not write to another parent.
void open_for_rename(const std::filesystem::path& path) {
  struct stat info {};
  if (::geteuid() == 0 || ::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  if ((info.st_mode & S_IWUSR) == 0) ::chmod(path.c_str(), (info.st_mode & 07777) | S_IWUSR);
}

// Reverts the effect of renaming on the root: an exchange on xfs changes its time, and it may have been made
// writable.
Result<> settle_root(const Destination& destination, const Entry& root) {
  if (root.type != EntryType::Folder) return {};
  const std::string shown = shown_path(destination.path());
  if (::utimensat(AT_FDCWD, destination.path().c_str(), times_of(root).data(), AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(errno, "setting the times of " + shown);
  }
  if (::geteuid() == 0 || (root.mode & S_IWUSR) != 0) return {};
  if (::chmod(destination.path().c_str(), kept_mode(root)) == 0) return {};
  return fail_errno(errno, "setting the permissions of " + shown);
}

Result<> exchange(const std::filesystem::path& one, const std::filesystem::path& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return {};
  return fail_errno(
      errno, "replacing " + shown_path(other) + " by one rename",
      errno == EINVAL ? "this file system can't: delete the earlier copy, or choose another name" : "");
}

// A file gets its hash when all of it has been written. No content has the hash of an unset digest, not even
// none at all.
Result<> check_complete(const Entries& entries, const PartialArea& area) {
  const auto missing = std::ranges::find_if(
      entries, [](const Entry& entry) { return is_content(entry) && entry.hash == Digest{}; });
  if (missing == entries.end()) return {};
  return fail(Errc::Failed,
              "publishing " + shown_path(area.data()) + ": " + printable(missing->path.view()) +
                  " was not copied, which is a defect of spark-stage",
              "run it again, and report this");
}

// None if the name is not that of a partial folder.
std::optional<Destination> destination_of_partial(const std::filesystem::path& folder,
                                                  const std::string& name) {
  if (!name.starts_with('.') || !name.ends_with(kPartialSuffix)) return std::nullopt;
  Destination destination{folder, name.substr(1, name.size() - sizeof kPartialSuffix)};
  return destination.partial().filename() == name ? std::optional(std::move(destination)) : std::nullopt;
}

// Gives the manifest its final name and deletes the replaced copy.
Result<> finish_publishing(const Destination& destination, PartialArea& area) {
  if (::rename(area.manifest().c_str(), destination.manifest().c_str()) != 0) {
    return fail_errno(errno, "renaming the manifest to " + shown_path(destination.manifest()));
  }
  if (auto flushed = flush_folder(destination.folder); !flushed) return flushed;
  return area.clear();
}

}  // namespace

std::filesystem::path Destination::manifest() const {
  return folder / companion_name(name, ".spark-manifest");
}

std::filesystem::path Destination::partial() const {
  return folder / companion_name(name, kPartialSuffix);
}

Result<Destination> destination_of(const std::filesystem::path& path) {
  std::string text = path.native();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const std::filesystem::path trimmed(text);
  Destination destination;
  destination.name = trimmed.filename();
  if (destination.name.empty() || destination.name == "." || destination.name == "..") {
    return fail(Errc::Invalid, "'" + shown_path(path) + "' is not a name that a copy could get");
  }
  const std::filesystem::path folder = trimmed.has_parent_path() ? trimmed.parent_path() : ".";
  auto named = open_named(folder, Links::Followed);
  if (!named) {
    Error error = std::move(named.error());
    if (error.kind == Errc::NotFound) error.hint = "make the folder first";
    return fail_with(std::move(error), "copying to " + shown_path(path));
  }
  auto held = std::make_shared<UniqueFd>(named->open_folder());
  if (!*held) return fail_errno(errno, "copying to " + shown_path(path) + ": opening its folder");
  destination.folder = held_path(*held);
  destination.held = std::move(held);
  return destination;
}

bool is_same_object(const RootIdentity& recorded, const RootIdentity& now) {
  const bool is_birth_unknown = recorded.birth_ns == 0 || now.birth_ns == 0;
  return recorded.inode == now.inode && (is_birth_unknown || recorded.birth_ns == now.birth_ns);
}

bool is_own(const std::filesystem::path& folder, uid_t owner) {
  struct statfs info {};  // an NFS server with root_squash maps root to the user nobody
  return owner == ::geteuid() || (::geteuid() == 0 && owner == kNobody &&
                                  ::statfs(folder.c_str(), &info) == 0 && info.f_type == NFS_SUPER_MAGIC);
}

bool is_trusted(const std::filesystem::path& folder, uid_t owner) {
  struct stat its {};
  if (owner == 0 || is_own(folder, owner)) return true;
  return ::stat(folder.c_str(), &its) == 0 && its.st_uid == owner;
}

bool is_trusted(const Destination& destination, const ManifestReader& manifest) {
  const auto owner = manifest.owner();
  return owner && is_trusted(destination.folder, *owner);
}

Result<std::optional<ManifestReader>> earlier_copy(const Destination& destination) {
  if (!is_there(destination.path())) return std::optional<ManifestReader>();
  const std::string shown = shown_path(destination.path());
  const auto identity = identity_of(destination.path());
  if (!identity) return identity.take_error();
  auto manifest = ManifestReader::open(destination.manifest());
  if (!manifest || !is_same_object(manifest->header().root, *identity)) {
    return fail(Errc::Refused,
                "copying to " + shown + ": the file or folder there is not a copy made by spark-stage",
                "choose another name, or delete it first");
  }
  if (!is_trusted(destination, *manifest)) {
    return fail(Errc::Refused, "copying to " + shown + ": the copy there was made by another user",
                "choose another name, or delete it first");
  }
  return std::optional<ManifestReader>(std::move(*manifest));
}

Readers readers_of(const Manifest& manifest) {
  if (!manifest.dataset.empty()) return {};
  const Entry& root = manifest.entries.front();
  return {(root.mode & 0444U) | 0600U, root.gid};
}

Result<Sealed> seal(PartialArea& area, Manifest manifest) {
  if (auto held = area.check_held(); !held) return held.take_error();
  if (auto complete = check_complete(manifest.entries, area); !complete) return complete.take_error();
  const auto identity = identity_of(area.data());
  if (!identity) return identity.take_error();
  manifest.root = *identity;
  if (auto written = write_manifest(area.manifest(), manifest, readers_of(manifest)); !written)
    return written.take_error();
  const ManifestHeader& header = manifest;
  return Sealed{header, manifest.entries.front(), summary_of(manifest.entries, block_of(area.folder()))};
}

Result<> publish(const Destination& destination, PartialArea& area, const Entry& root, const StepHook& hook,
                 Replacing replacing) {
  // The manifest proves `data`; after an exchange the journal would be about other data.
  if (auto removed = remove_tree(area.folder(), "journal"); !removed) return removed;
  if (auto flushed = flush_folder(area.folder()); !flushed) return flushed;
  if (auto go_on = after(hook, "manifest"); !go_on) return go_on;
  if (auto held = area.check_held(); !held) return held;

  bool replaces = is_there(destination.path());
  open_for_rename(area.data());
  if (replaces) open_for_rename(destination.path());
  if (replaces && replacing == Replacing::InTwoSteps) {
    if (auto aside = rename_to_new(destination.path(), area.replaced()); !aside) return aside;
    if (auto go_on = after(hook, "aside"); !go_on) return go_on;
    replaces = false;
  }
  auto renamed =
      replaces ? exchange(area.data(), destination.path()) : rename_to_new(area.data(), destination.path());
  if (!renamed && replacing == Replacing::AsPossible && renamed.error().number == EINVAL)
    return publish(destination, area, root, hook, Replacing::InTwoSteps);
  if (!renamed) return renamed;
  if (auto go_on = after(hook, "rename"); !go_on) return go_on;
  if (auto settled = settle_root(destination, root); !settled) return settled;
  if (auto flushed = flush_folder(destination.folder); !flushed) return flushed;
  if (auto flushed = flush_folder(area.folder()); !flushed) return flushed;
  if (auto go_on = after(hook, "flush"); !go_on) return go_on;
  return finish_publishing(destination, area);
}

bool is_answer(const Error& error) {
  return error.kind == Errc::NotFound || error.number == 0;
}

Result<> recover_publishing(const Destination& destination, PartialArea& area) {
  auto manifest = ManifestReader::open(area.manifest());
  if (!manifest && !is_answer(manifest.error())) return manifest.take_error();
  auto published = identity_of(destination.path());
  if (!published && !is_answer(published.error())) return published.take_error();
  // It was interrupted between the two steps of a replacement: nothing has the name.
  const auto data = identity_of(area.data());
  if (manifest && !published && data && is_there(area.replaced()) &&
      is_same_object(manifest->header().root, *data)) {
    open_for_rename(area.data());
    if (auto renamed = rename_to_new(area.data(), destination.path()); !renamed) return renamed;
    published = *data;
  }
  if (!manifest || !published || !is_same_object(manifest->header().root, *published)) return {};
  const auto root = manifest->next();
  if (!root) return manifest->error();
  if (auto settled = settle_root(destination, *root); !settled) return settled;
  // The rename was done; it may not be flushed yet.
  if (auto flushed = flush_folder(destination.folder); !flushed) return flushed;
  return finish_publishing(destination, area);
}

Result<> finish_publishings(const std::filesystem::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    const auto destination = destination_of_partial(folder, name);
    if (!destination || !is_there(destination->partial() / "manifest")) continue;
    auto area = PartialArea::try_open(destination->partial());
    if (!area) continue;
    if (auto finished = recover_publishing(*destination, *area); !finished && all) all = std::move(finished);
  }
  return all;
}

std::optional<Destination> being_replaced(const std::filesystem::path& folder, const std::string& name) {
  auto destination = destination_of_partial(folder, name);
  if (!destination || is_there(destination->path())) return std::nullopt;
  const auto area = PartialArea::look_at(destination->partial());  // others may have made one
  return area && is_there(area->folder() / "replaced") ? std::move(destination) : std::nullopt;
}

Result<> rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  int failed = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (failed == EINVAL) {  // not supported by this file system
    failed = is_there(to) ? EEXIST : ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  if (failed == 0) return {};
  return fail_errno(failed, "renaming " + shown_path(from) + " to " + shown_path(to));
}

}  // namespace spark::staging
