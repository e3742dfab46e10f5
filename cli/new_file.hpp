// A file that a verb makes instead of printing: whole or not at all, and never over one that is there.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spark::cli {

// Refused: it is there already.
Result<> write_new_file(const std::string& file, const std::string& text, unsigned mode = 0644);

}  // namespace spark::cli
