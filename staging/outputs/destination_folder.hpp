// The folder on a volume in which outputs are published.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::staging {

struct DestinationFolder {
  UniqueFd opened;             // another user may give its name to another folder
  std::filesystem::path path;  // held_path() of it
};

// Creates `folder` below the volume's mount point, and makes new folders durable. `folder` is relative; empty
// means the mount point itself. Invalid if a component is a symbolic link, or is
// on another mount.
Result<DestinationFolder> make_destination_folder(const std::filesystem::path& mount_point,
                                                  const std::string& folder);

// Deletes unfinished copies in the folder, except that of `name`: the partial copy of a
// checkpoint that is no longer sent would take space indefinitely. Copies in progress stay, as do those that
// have all their data. Returns a sentence for each of this user's that stays for want of proof (OwnRest).
Result<std::vector<std::string>> remove_unfinished_copies(const std::filesystem::path& folder,
                                                          const std::string& name);

}  // namespace spark::staging
