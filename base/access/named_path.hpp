// Paths that other users may change on the way, opened one name at a time. The kernel would follow any user's
// link with root's rights: a user who may stage a folder could make it a link to one that is closed to that
// user.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark {

enum class Links {
  Followed,
  LastIsItself,  // all but the path's last name
  OfRootAlone,   // Refused at a link of another user
};

// The volume that a path names something on: a link on it may not lead out.
struct Within {
  std::string mount;  // without links
  dev_t device = 0;
};

struct NamedPath {
  UniqueFd fd;       // O_PATH
  UniqueFd folder;   // the same of the folder that has it; none for "/"
  std::string path;  // without links
  struct stat info {};

  UniqueFd open_folder() const;  // its content; none on failure, with the reason in errno
};

// A relative path begins at the current folder, and a held_path() at its folder. If this process is root's,
// what is behind a link of another user, or in another user's folder, is entered with that user's rights too:
// Refused where that user may not go, or may not read the file, or list the folder, that it names.
Result<NamedPath> open_named(const std::filesystem::path& path, Links links,
                             const std::optional<Within>& within = std::nullopt);

}  // namespace spark
