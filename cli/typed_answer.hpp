// Irreversible actions need a typed word: a key pressed too often is no answer.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/context.hpp"

namespace spark::cli {

struct TypedQuestion {
  std::string what;       // in sentences: "the volume's name"
  std::string wanted;     // the word to type
  std::string given;      // the value of --confirm; empty: ask the user
  std::string untouched;  // when the answer is another: "nothing was written"
  std::string hint;       // how to go on without being asked
};

// Errc::Failed when another answer is typed, or none; Errc::Invalid when another is given.
Result<> ask_to_type(Context& context, const TypedQuestion& question);

}  // namespace spark::cli
