// The fleet's key as a person has brought it to this host.
#pragma once

#include <istream>
#include <string>

#include "base/result.hpp"

namespace spark::cli {

// From the file, or from `in` if that is "-", which may wait for a person. Empty if `file` is. Refused:
// another user may know what is in the file.
Result<std::string> given_key(std::istream& in, const std::string& file);

}  // namespace spark::cli
