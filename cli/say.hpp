// A sentence to a person: broken at the width of the terminal that it goes to, else one line.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/context.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {

// A result, on stdout.
inline void say(Context& context, const std::string& words) {
  context.out << sentence(words, context.terminal.columns, context.terminal.out) << std::flush;
}

// An answer for programs, on stdout; its exit status.
inline int show_json(Context& context, const json::value& answer) {
  context.out << pretty(answer) << "\n";
  return 0;
}

// Errors, and the context of a question, on stderr.
inline void warn(Context& context, const std::string& words) {
  context.err << sentence(words, context.terminal.columns, context.terminal.err) << std::flush;
}

// Notes, on stderr; nothing with --quiet.
inline void tell(Context& context, const std::string& words) {
  if (!context.terminal.is_quiet) warn(context, words);
}

}  // namespace spark::cli
