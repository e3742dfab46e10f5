#include "cli/view/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace spark::cli {
namespace {

constexpr unsigned short kNarrowestTerminal = 40;  // a smaller width is assumed to be wrong

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal look_at_terminal(int out, int err) {
  Terminal terminal;
  const char* type = std::getenv("TERM");
  const bool is_dumb = type == nullptr || std::strcmp(type, "dumb") == 0;
  terminal.out = ::isatty(out) == 1;
  terminal.err = ::isatty(err) == 1 && !is_dumb;  // bars move the cursor
  terminal.redraws = terminal.out && !is_dumb;
  terminal.colour = terminal.redraws && !is_set("NO_COLOR");
  winsize size{};
  if (::ioctl(terminal.err ? err : out, TIOCGWINSZ, &size) != 0) return terminal;
  if (size.ws_col >= kNarrowestTerminal) terminal.columns = size.ws_col;
  if (size.ws_row > 0) terminal.rows = size.ws_row;
  return terminal;
}

}  // namespace spark::cli
