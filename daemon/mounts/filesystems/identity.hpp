// What lies on a device, whatever it is: libblkid's answer, for the types that we don't read ourselves.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::mounts {

struct Identity {
  std::string type, uuid, label;  // empty: none
  std::string partition_table;
};

// Refused: signatures of more than one file system.
Result<Identity> identify(const std::filesystem::path& device);

}  // namespace spark::mounts
