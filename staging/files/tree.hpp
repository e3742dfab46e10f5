// A folder or file and everything below it, accessed without ever leaving it: no symlink, "..", or file
// system mounted inside is followed, even if another process swaps one in meanwhile.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/access/named_path.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Targets that replace symlinks that lead out of a tree (see follow_outside_links).
struct Grafts {
  UniqueFd limit;          // the folder that contains all targets; none means that there are no grafts
  std::string limit_path;  // canonical
  std::map<std::string, std::string, std::less<>>
      targets;  // the link's path in the tree → path below `limit`
};

struct Tree {
  UniqueFd folder;
  std::string file;         // the tree is this one name in `folder`; empty means the tree is `folder` itself
  std::string folder_path;  // for messages
  std::string file_system;  // of a source: see note_file_system()
  bool is_source = false;   // set there: errors of reading it are the source's
  // For regular files: all permission bits, or all but set-user-ID and set-group-ID if the tree is mounted
  // nosuid. A copy in which those took effect would be a way to become root.
  std::uint32_t file_mode_mask = 07777;
  // False if it consists of hard links that hold a source: their ctime, 0 in all entries then, changes when
  // the job deletes its own names of the files.
  bool has_ctime = true;
  // Of a source: users who do not own it learn what is skipped, and which links lead elsewhere.
  bool is_told_to_others = false;
  Grafts grafts;

  // The path below `folder` of the entry with `path` in the tree.
  std::string below(std::string_view path) const;
  std::string root() const;  // the full path of the root
  // For messages: the full path, printable.
  std::string shown(std::string_view path) const;
  // "reading PATH: …", see fail_errno()
  tl::unexpected<Error> failed(int number, const std::string& doing, std::string_view path,
                               std::string hint = {}) const;
};

// Suffix of the folder with such trees. Its name begins with a dot.
inline constexpr char kHeldSuffix[] = ".spark-held";

// The path of `name` in the folder with `path`, both below a root.
std::string join_path(const std::string& path, const std::string& name);

// Whether `path` is `folder` or below it; both canonical.
bool is_inside(const std::string& path, const std::string& folder);

enum class RootLink { Followed, Refused };

// The tree at `path`; symlinks in `path` itself are followed as open_named() does. NotFound, or Invalid
// if it is neither a folder nor a regular file. With RootLink::Refused its last name must not be a symlink.
Result<Tree> open_tree(const std::filesystem::path& path, RootLink link = RootLink::Followed,
                       const std::optional<Within>& within = std::nullopt);

// For a folder that no other user can replace. A tree that will be created as `name` in the folder, or exists
// already.
Result<Tree> tree_in(const std::filesystem::path& folder, const std::string& name);

// Opens the entry. On failure errno has the reason: ELOOP for a symlink, EXDEV for a mount point in between.
UniqueFd open_beneath(const Tree& tree, std::string_view path, int flags);

// The folder that holds the entry, and its name there.
struct Parent {
  UniqueFd folder;  // none on failure; errno has the reason
  std::string name;
};
Parent open_parent(const Tree& tree, std::string_view path);

// The target of `path` below the folder. Symlinks are followed as long as none leaves the folder or its
// mount.
struct Followed {
  UniqueFd fd;       // O_PATH; none on failure, with the reason in errno
  std::string path;  // below the folder, without symlinks
};
Followed follow_beneath(int folder, const std::string& folder_path, const std::string& path);

// The mount point of the mount that contains `path`, which is canonical.
std::string mount_root_of(const std::string& path);

// Deletes the entry and everything below it; a missing entry is no error. Follows nothing. Entries that can't
// be deleted stay, with their parent folders; the first such failure is returned.
Result<> remove_tree(const Tree& tree, std::string_view path);
Result<> remove_tree(const std::filesystem::path& folder, const std::string& name);

// Calls `take` for each name in the folder except "." and ".."; ends at the first error, its own or of
// `take`.
Result<> for_each_name(UniqueFd folder, const std::string& shown,
                       const std::function<Result<>(std::string)>& take);
Result<std::vector<std::string>> names_in(UniqueFd folder, const std::string& shown);

// Identifies the object at `path`, without following it; NotFound if there is none.
Result<RootIdentity> identity_of(const std::filesystem::path& path);
// Of what is open. `path` is for the message.
Result<RootIdentity> identity_of(const UniqueFd& opened, const std::filesystem::path& path);

}  // namespace spark::staging
