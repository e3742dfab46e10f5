// Output on a real terminal
#include "cli/view/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <cstdlib>

#include "base/file.hpp"

namespace spark::cli {
namespace {

class TerminalLook : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm-256color", 1);
    ::unsetenv("NO_COLOR");
    winsize size{};
    size.ws_col = 132;
    size.ws_row = 43;
    int ours = -1, theirs = -1;
    ASSERT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, &size), 0);
    keyboard.reset(ours);
    screen.reset(theirs);
    file.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  void TearDown() override {
    ::unsetenv("NO_COLOR");
    ::unsetenv("TERM");
  }
  UniqueFd keyboard, screen, file;
};

TEST_F(TerminalLook, HasItsSizeAndColours) {
  const Terminal seen = look_at_terminal(screen.get(), screen.get());
  EXPECT_TRUE(seen.out && seen.err && seen.colour && seen.redraws);
  EXPECT_EQ(seen.columns, 132U);
  EXPECT_EQ(seen.rows, 43U);
}

TEST_F(TerminalLook, NoColorDisablesOnlyColours) {
  ::setenv("NO_COLOR", "1", 1);
  const Terminal seen = look_at_terminal(screen.get(), screen.get());
  EXPECT_FALSE(seen.colour);
  EXPECT_TRUE(seen.out && seen.err && seen.redraws);
  ::setenv("NO_COLOR", "", 1);  // no-color.org: empty counts as unset
  EXPECT_TRUE(look_at_terminal(screen.get(), screen.get()).colour);
}

TEST_F(TerminalLook, ADumbTerminalGetsNoEscapes) {
  ::setenv("TERM", "dumb", 1);
  const Terminal seen = look_at_terminal(screen.get(), screen.get());
  EXPECT_TRUE(seen.out);
  EXPECT_FALSE(seen.err || seen.colour || seen.redraws);
  ::unsetenv("TERM");
  EXPECT_FALSE(look_at_terminal(screen.get(), screen.get()).colour);
}

TEST_F(TerminalLook, AFileIsNotATerminal) {
  const Terminal piped = look_at_terminal(file.get(), screen.get());
  EXPECT_FALSE(piped.out || piped.colour || piped.redraws);
  EXPECT_TRUE(piped.err);
  EXPECT_EQ(piped.columns, 132U) << "for the bars on stderr";
  const Terminal quiet = look_at_terminal(screen.get(), file.get());
  EXPECT_TRUE(quiet.out && quiet.colour);
  EXPECT_FALSE(quiet.err);
  EXPECT_EQ(look_at_terminal(file.get(), file.get()).columns, 80U);
}

}  // namespace
}  // namespace spark::cli
