#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_daemon.hpp"

extern "C" {
#include "slurm/staging.h"
}

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kAccepted = R"({"id":"7","key":"7-1f","verb":"stage"})";
const std::string kDone = R"({"event":"done","result":{"datasets":[{"name":"a","path":"/cache/a"}]}})";

std::string failed(const std::string& kind) {
  return R"({"event":"failed","error":{"kind":")" + kind + R"(","what":"it failed","hint":"do this"}})";
}

class StagingTest : public testing::Test {
 protected:
  int stage(const char* socket, int wake_fd = -1, int64_t reconnect_ms = 60'000) {
    char name[] = "a";
    char* names[] = {name};
    const Staging staging{
        daemon_at(socket), {1, names, nullptr}, {5, "alice", 77, nullptr}, wake_fd, {0, reconnect_ms, 0}};
    Report report = start_report("n1", [](const char* line) { said.emplace_back(line); });
    const int result = stage_and_wait(&staging, &report, &staged_, &failure_);
    if (result == 0) path_ = staged_text(&staged_, 0, "path");
    free_staged(&staged_);
    return result;
  }

  void SetUp() override { said.clear(); }

  static inline std::vector<std::string> said;
  StagedList staged_{};
  Failure failure_{};
  std::string path_;
};

TEST_F(StagingTest, WaitsForTheEndOfTheJobThatTookTheRequest) {
  FakeDaemon fake(
      {answer(202, kAccepted), events({R"({"event":"progress","dataset":"a","phase":"copying"})", kDone})});
  ASSERT_EQ(stage(fake.path()), 0) << failure_.what;
  EXPECT_EQ(path_, "/cache/a");
  EXPECT_THAT(fake.requests(),
              ElementsAre(StartsWith("POST /v1/stagings "), StartsWith("GET /v1/jobs/7-1f/events ")));
}

TEST_F(StagingTest, ARefusalIsFinalBeforeAndDuringTheStaging) {
  FakeDaemon at_once(
      {answer(404, R"({"error":{"kind":"not_found","what":"there is no dataset 'a'","hint":""}})")});
  EXPECT_EQ(stage(at_once.path()), -1);
  EXPECT_STREQ(failure_.what, "there is no dataset 'a'");
  FakeDaemon later({answer(202, kAccepted), events({failed("no_space")})});
  EXPECT_EQ(stage(later.path()), -1);
  EXPECT_STREQ(failure_.kind, "no_space");
}

TEST_F(StagingTest, ALostConnectionFollowsTheSameJobAgain) {
  FakeDaemon fake({answer(202, kAccepted), events({R"({"event":"progress"})"}, true), events({kDone})});
  ASSERT_EQ(stage(fake.path()), 0) << failure_.what;
  EXPECT_EQ(path_, "/cache/a");
  EXPECT_THAT(said.front(), HasSubstr("trying again for 60 s"));
  EXPECT_THAT(fake.requests(),
              ElementsAre(StartsWith("POST /v1/stagings "), StartsWith("GET /v1/jobs/7-1f/events "),
                          StartsWith("GET /v1/jobs/7-1f/events ")));
}

TEST_F(StagingTest, AJobUnknownToTheRestartedDaemonIsRequestedAgain) {
  FakeDaemon fake({answer(202, kAccepted), answer(404, "{}"), answer(202, kAccepted), events({kDone})});
  EXPECT_EQ(stage(fake.path()), 0) << failure_.what;
}

TEST_F(StagingTest, WaitsWithoutALimitForASourceThatIsAway) {
  FakeDaemon fake({answer(202, kAccepted), events({kDone})});
  ASSERT_EQ(stage(fake.path()), 0) << failure_.what;
  EXPECT_THAT(fake.requests().front(), HasSubstr(R"("wait_s":null)"));
}

TEST_F(StagingTest, ALiveDatasetIsReportedAsSuch) {
  FakeDaemon fake({answer(202, kAccepted),
                   events({R"({"event":"progress","dataset":"a","phase":"stalled"})",
                           R"({"event":"done","result":{"datasets":[{"name":"a","path":"/live/a",)"
                           R"("state":"live"}]}})"})});
  ASSERT_EQ(stage(fake.path()), 0) << failure_.what;
  EXPECT_EQ(path_, "/live/a");
  EXPECT_THAT(said.back(), HasSubstr("a is live: reads of what is missing wait"));
  for (const std::string& line : said) EXPECT_EQ(line.find("staged after"), std::string::npos) << line;
}

TEST_F(StagingTest, ACopyThatWasNotComparedWithItsSourceIsReported) {
  FakeDaemon fake({answer(202, kAccepted),
                   events({R"({"event":"done","result":{"datasets":[{"name":"a","path":"/cache/a",)"
                           R"("unchecked":"volume v is lost since Friday"}]}})"})});
  ASSERT_EQ(stage(fake.path()), 0) << failure_.what;
  EXPECT_THAT(said, ElementsAre("n1: warning: the copy of a was not compared with its source: volume v is "
                                "lost since Friday"));
}

TEST_F(StagingTest, ADaemonThatRefusesToShowItsJobIsNotAskedForAnother) {
  FakeDaemon fake({answer(202, kAccepted),
                   answer(503, R"({"error":{"kind":"unavailable","what":"too many","hint":""}})")});
  EXPECT_EQ(stage(fake.path()), -1);
  EXPECT_THAT(failure_.what, HasSubstr("HTTP status 503"));
  EXPECT_EQ(fake.requests().size(), 2U);
}

TEST_F(StagingTest, ADaemonThatDoesNotComeBackIsReported) {
  FakeDaemon fake({answer(202, kAccepted), events({}, true)});
  EXPECT_EQ(stage(fake.path(), -1, 0), -1);
  EXPECT_STREQ(failure_.kind, kUnreachable);
  EXPECT_THAT(failure_.hint, HasSubstr("systemctl start spark-staged"));
}

TEST_F(StagingTest, AMissingDaemonFailsTheTask) {
  EXPECT_EQ(stage("/nowhere/api.sock"), -1);
  EXPECT_STREQ(failure_.kind, kUnreachable);
}

TEST_F(StagingTest, ACancelledStepWaitsNoLonger) {
  FakeDaemon fake({});
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(stage("/nowhere/api.sock", ends[0]), -1);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace spark
