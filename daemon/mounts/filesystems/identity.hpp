// Identifies the content of a device with libblkid, for the types that this program does not parse.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::mounts {

struct Identity {
  std::string type, uuid, label;  // empty means none
  std::string partition_table;
};

// Refused if there are signatures of more than one file system.
Result<Identity> identify(const std::filesystem::path& device);

}  // namespace spark::mounts
