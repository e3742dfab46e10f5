// A new content for a file that a person has made.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.hpp"

namespace spark::cli {

// As write_file_atomically; the new file has the owner, the mode and the ACL of the old one from the
// beginning.
Result<> replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace spark::cli
