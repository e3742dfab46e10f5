// Whole file systems, and the devices below them; and folders that stay open, so that no other user can put a
// link in their place meanwhile.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark {

// Makes everything on the file system of this file or folder durable.
Result<> flush_file_system(const std::filesystem::path& path);

// By a mount in any namespace, swap, or an exclusive open; also of a partition.
bool is_device_claimed(const std::filesystem::path& device);

// Of the same file or folder, under whatever name.
bool is_same_file(const struct stat& a, const struct stat& b);

// "259:3", as in /sys/dev/block.
std::string device_text(dev_t device);

inline constexpr std::string_view kHeldPrefix = "/proc/self/fd/";

// "/proc/self/fd/7", for as long as the folder is open.
std::filesystem::path held_path(const UniqueFd& folder);

// Such a path with the name that the folder has at present; any other path as it is.
std::filesystem::path present_path(const std::filesystem::path& path);

// The same for messages.
std::string shown_path(const std::filesystem::path& path);

}  // namespace spark
