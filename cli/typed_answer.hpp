// What can't be undone is asked for in letters: a key pressed too often is no answer.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/context.hpp"

namespace spark::cli {

struct TypedQuestion {
  std::string what;       // in sentences: "the volume's name"
  std::string wanted;     // what has to be typed
  std::string given;      // what --confirm has; empty: the person is asked
  std::string untouched;  // when the answer is another: "nothing was written"
  std::string hint;       // how to go on without being asked
};

// Errc::Failed when another answer is typed, or none; Errc::Invalid when another is given.
Result<> ask_to_type(Context& context, const TypedQuestion& question);

}  // namespace spark::cli
