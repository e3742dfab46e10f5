// Owners, permissions, ACLs, user attributes and times, put on what was copied.
#pragma once

#include <array>
#include <ctime>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// For utimensat(2) and its kin: the entry's time of change, and the time of access left alone.
std::array<timespec, 2> times_of(const Entry& entry);

// What of the metadata could not be kept, and is no reason to fail.
enum class Kept { All, WithoutAttributes };

// Attributes come from `source_fd`; the rest from the entry. As root the owner is kept; else set-user-ID and
// set-group-ID are dropped with it.
Result<Kept> put_metadata(int fd, int source_fd, const Entry& entry, const std::string& shown);

// Whether the file has user attributes or ACLs, which put_metadata copies.
bool has_kept_attributes(int fd);

// The rest of what put_metadata does, for a new file of this process's.
Result<> put_plain_metadata(int fd, const Entry& entry, const std::string& shown);

// For the symlink `name` in the folder: owner and times.
Result<> put_symlink_metadata(int folder, const std::string& name, const Entry& entry,
                              const std::string& shown);

// What put_metadata makes of the entry's mode for this user.
std::uint32_t kept_mode(const Entry& entry);

// Takes a default ACL away, so that nothing made below inherits one.
void drop_inherited_acl(int folder);

}  // namespace spark::staging
