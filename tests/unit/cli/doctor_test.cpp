#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cli/format/screens.hpp"
#include "cli/format/text.hpp"
#include "tests/support/fake_host.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

std::string screen_of(const doctor::Host& host, Terminal terminal = {}) {
  std::ostringstream out;
  print_findings(out, terminal, to_json(doctor::examine(host)));
  return out.str();
}

// The free space of this machine's disk is in the last lines.
std::string without_free_space(const std::string& screen) {
  return screen.substr(0, screen.find("\nfine"));
}

TEST(DoctorScreen, NamesEachFindingOfTodaysSetUp) {
  test::FakeHost fake;
  fake.has_config = false;
  test::set_up_by_hand(fake.files);
  const std::string screen = screen_of(fake.host());
  for (const std::string& line : split(screen, '\n')) {
    EXPECT_TRUE(display_width(line) <= 80 || line.find("       ") != 0) << line;
  }
  expect_golden("doctor.txt", without_free_space(screen));
}

TEST(DoctorScreen, OfAHostInOrderIsShort) {
  test::FakeHost fake;
  const std::string screen = screen_of(fake.host());
  EXPECT_TRUE(screen.ends_with("Nothing is wrong.\n")) << screen;
  EXPECT_LE(split(screen, '\n').size(), 7u) << screen;
  EXPECT_NE(screen.find("\n       target rose: fast0, 200 Gb/s, packets of 9000 bytes\n"), std::string::npos)
      << screen;
}

class DoctorVerb : public ::testing::Test {
 protected:
  DoctorVerb() { program.context.root = fake.files.root(); }
  test::FakeHost fake;
  Program program;
};

TEST_F(DoctorVerb, ExitsWithOneIfSomethingIsWrong) {
  fake.files.remove("etc/nvme/hostnqn");
  EXPECT_EQ(program.run({"doctor", "--config", "/no/such.yaml"}), 1) << program.output();
  EXPECT_NE(program.output().find("WRONG"), std::string::npos);
}

TEST_F(DoctorVerb, NotesAloneAreNoFailure) {
  EXPECT_EQ(program.run({"doctor", "--config", "/no/such.yaml", "--json"}), 0) << program.output();
  const auto report = parse_json_object(program.output());
  ASSERT_TRUE(report);
  EXPECT_EQ(get_int(*report, "wrong"), 0);
  EXPECT_GE(get_int(*report, "notes").value_or(0), 1);
  EXPECT_NE(get_array(*report, "findings"), nullptr);
}

}  // namespace
}  // namespace spark::cli
