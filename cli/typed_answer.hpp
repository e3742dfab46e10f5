// What can't be undone is asked for in letters: a key pressed too often is no answer.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/context.hpp"

namespace spark::cli {

// Asks for `wanted`, called `what` in sentences ("the volume's name"). Anything else is Errc::Cancelled:
// "`untouched`: that is not …" ("nothing was written"), with `hint`, how to go on without being asked.
Result<> ask_to_type(Context& context, const std::string& what, const std::string& wanted,
                     const std::string& untouched, const std::string& hint);

}  // namespace spark::cli
