#include "cli/typed_answer.hpp"

#include <istream>

#include "base/text.hpp"

namespace spark::cli {

Result<> ask_to_type(Context& context, const std::string& what, const std::string& wanted,
                     const std::string& untouched, const std::string& hint) {
  context.err << "\nType " << what << " to go on: " << std::flush;
  std::string typed;
  if (std::getline(context.in, typed) && trim(typed) == wanted) return {};
  return fail(Errc::Cancelled, untouched + ": that is not " + what, hint);
}

}  // namespace spark::cli
