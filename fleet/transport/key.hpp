// The key that all hosts of a fleet share.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::fleet {

// 32 random bytes as 64 hexadecimal digits, as a key file holds them.
Result<std::string> new_key();

// Invalid: not such a file. Refused: others than its owner may read it.
Result<std::string> read_key(const std::filesystem::path& file);

}  // namespace spark::fleet
