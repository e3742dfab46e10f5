// `status --watch`: the same screen again and again, until ^C.
#pragma once

#include "base/result.hpp"
#include "cli/context.hpp"

namespace spark::cli {

// "2", "0.5" (seconds), or "500ms", "1m"; at least a tenth of a second.
Result<Duration> parse_interval(const std::string& text);

// On a terminal redrawn in place; elsewhere the screen, with its time, when it changed. As JSON: one object a
// line. Goes on over restarts of the daemon. 130 when it is interrupted.
struct WatchOptions {
  std::vector<std::string> names;  // volumes; none: everything
  Duration interval;
  bool as_json = false;
};
Result<int> watch_status(Context& context, const WatchOptions& options);

}  // namespace spark::cli
