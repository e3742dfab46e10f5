// Whole file systems, and the devices below them.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark {

// Makes everything on the file system of this file or folder durable.
Result<> flush_file_system(const std::filesystem::path& path);

// By a mount in any namespace, swap, or an exclusive open; also of a partition.
bool is_device_claimed(const std::filesystem::path& device);

}  // namespace spark
