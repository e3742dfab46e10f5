// status --watch
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

std::string answer_of(const std::string& state, const std::string& more = "") {
  return R"({"version": "0.1.0", "uptime_s": 1, "volumes": [{"name": "datasets", "kind": "nvme-tcp", "state": ")" +
         state +
         R"(", "since": "2026-11-20T15:21:20Z", "mount": "/mnt/a", "access": "read-only", "device": null}], "stages": [)" +
         more + "]}";
}

class Watch : public ::testing::Test {
 protected:
  void then(const std::string& answer) { program.client.answer("GET /v1/status", 200, answer); }
  // Interrupts the command after this many requests.
  int looks(unsigned number, std::vector<std::string> options) {
    program.timer.on_sleep = [this, number] { program.stop = program.client.sent.size() >= number; };
    options.insert(options.begin(), "status");
    return program.run(options);
  }
  Program program;
};

TEST_F(Watch, OnATerminalIsRedrawnInPlaceAndContinuesAcrossARestart) {
  program.context.terminal = {true, true, 72, false, true, 24};
  then(answer_of("waiting"));
  program.client.fail_once(
      "GET /v1/status", {Errc::Unavailable, "spark-staged does not answer on /run/spark-stage/api.sock", ""});
  then(answer_of("ready"));
  EXPECT_EQ(looks(3, {"--watch"}), 130);
  EXPECT_EQ(program.errors(), "");
  expect_golden_screen("watch-terminal.txt", program.output(), 72);
}

TEST_F(Watch, InAPipeIsANewBlockOnlyWhenSomethingChanged) {
  then(answer_of("waiting"));
  then(answer_of("waiting"));
  program.client.fail_once("GET /v1/status", {Errc::Unavailable, "no daemon", ""});
  program.client.fail_once("GET /v1/status", {Errc::Unavailable, "no daemon", ""});
  then(answer_of("waiting"));
  then(answer_of("ready"));
  EXPECT_EQ(looks(7, {"-w", "5"}), 130);
  EXPECT_EQ(program.errors(), "spark-stage: no daemon - still trying\n");
  expect_golden("watch-pipe.txt", program.output());
}

TEST_F(Watch, AsJsonIsAnObjectALine) {
  program.context.terminal = {true, true, 72, true, true, 24};
  then(answer_of("waiting"));
  then(answer_of("ready"));
  EXPECT_EQ(looks(3, {"--watch=0.5", "--json"}), 130);
  const std::vector<std::string> lines = split(program.output(), '\n');
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(parse_json_object(lines[i])) << lines[i];
  EXPECT_EQ(lines[1], lines[2]) << "each look is told";
}

TEST_F(Watch, RefreshesAtTheGivenInterval) {
  const SteadyTime begin = program.timer.steady();
  then(answer_of("ready"));
  EXPECT_EQ(looks(4, {"--watch=2.5"}), 130);
  EXPECT_EQ(program.timer.steady() - begin, std::chrono::seconds(10));
  for (const char* bad : {"--watch=0", "--watch=often", "--watch=-3", "--watch=1e9"}) {
    Program mistaken;
    EXPECT_EQ(mistaken.run({"status", bad}), 2) << bad;
    EXPECT_TRUE(mistaken.client.sent.empty()) << bad;
  }
}

TEST_F(Watch, ATallScreenKeepsItsTitleInSight) {
  program.context.terminal = {true, true, 72, false, true, 8};
  std::string many;
  for (int i = 0; i < 9; ++i) {
    many += (i == 0 ? "" : ",") + std::string(R"({"dataset": "d)") + std::to_string(i) +
            R"(", "phase": "queued"})";
  }
  then(answer_of("ready", many));
  EXPECT_EQ(looks(1, {"-w"}), 130);
  const std::string frame = program.output().substr(program.output().find("\x1b[H"));
  EXPECT_LT(std::count(frame.begin(), frame.end(), '\n'), 9) << frame;
  EXPECT_NE(frame.find("… 9 more lines"), std::string::npos) << frame;
}

TEST_F(Watch, FollowsTheWindowsSize) {
  program.context.terminal = {true, true, 72, false, true, 24};
  unsigned columns = 72;
  program.context.look_at_terminal = [&] { return Terminal{true, true, columns -= 20, false, true, 24}; };
  then(answer_of(
      "ready",
      R"({"dataset": "imagenet", "phase": "stalled", "bytes_done": 1, "bytes_total": 2, "reason": "volume models is waiting; it goes on"})"));
  EXPECT_EQ(looks(1, {"-w"}), 130);
  EXPECT_NE(program.output().find("volume models\x1b[K\n  is waiting"), std::string::npos)
      << program.output();
}

TEST_F(Watch, DoesNotWaitForPermission) {
  program.client.fail_once("GET /v1/status", {Errc::Denied, "permission denied", "join the group"});
  EXPECT_EQ(program.run({"status", "--watch"}), 1);
}

}  // namespace
}  // namespace spark::cli
