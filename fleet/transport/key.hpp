// The key that all hosts of a fleet share.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::fleet {

// 32 random bytes as 64 hexadecimal digits, the format of a key file.
Result<std::string> new_key();

// Invalid: not a key file. Refused: users other than its owner may read it.
Result<std::string> read_key(const std::filesystem::path& file);

}  // namespace spark::fleet
