#include "cli/typed_answer.hpp"

#include <istream>

#include "base/text.hpp"

namespace spark::cli {

Result<> ask_to_type(Context& context, const TypedQuestion& question) {
  if (question.given == question.wanted) return {};
  if (!question.given.empty()) {
    return fail(Errc::Invalid, question.untouched + ": --confirm says '" + printable(question.given) +
                                   "', and " + question.what + " is " + printable(question.wanted));
  }
  context.err << "\nType " << question.what << " to continue: " << std::flush;
  std::string typed;
  if (std::getline(context.in, typed) && trim(typed) == question.wanted) return {};
  return fail(Errc::Failed, question.untouched + ": the answer was not " + question.what, question.hint);
}

}  // namespace spark::cli
