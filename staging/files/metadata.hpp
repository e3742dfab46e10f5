// Applies owners, permissions, ACLs, user attributes and times to copied files.
#pragma once

#include <array>
#include <ctime>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// For utimensat(2) and similar calls: the entry's modification time; the access time stays unchanged.
std::array<timespec, 2> times_of(const Entry& entry);

// Whether some metadata could not be kept, without being a reason to fail.
enum class Kept { All, WithoutAttributes };

// For messages: an error names the file that it is about.
struct ShownFiles {
  std::string copy, source;
  bool is_of_source = true;  // false: both are files of the copy
};

// Attributes come from `source_fd`, the rest from the entry. Root keeps the owner; otherwise set-user-ID and
// set-group-ID are dropped with it.
Result<Kept> put_metadata(int fd, int source_fd, const Entry& entry, const ShownFiles& shown);

// Whether the file has user attributes or ACLs, which put_metadata copies.
Result<bool> has_kept_attributes(int fd);
// Whether its mode alone does not determine its readers.
bool has_acl(int fd);
// Whether two files have the same of them.
Result<bool> has_same_attributes(int fd, int other_fd);

// The other part of put_metadata, for a file or folder that this process has created.
Result<> put_plain_metadata(int fd, const Entry& entry, const std::string& shown);

// For the symlink `name` in the folder: owner and times.
Result<> put_symlink_metadata(int folder, const std::string& name, const Entry& entry,
                              const std::string& shown);

// The mode that put_metadata sets for this entry and user.
std::uint32_t kept_mode(const Entry& entry);

// Removes a default ACL, so that nothing created below inherits it.
void drop_inherited_acl(int folder);

}  // namespace spark::staging
