#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Prefetch : public ::testing::Test {
 protected:
  static constexpr char kEvents[] = "/v1/jobs/7/events";
  static constexpr char kNoSpace[] =
      R"({"event": "failed", "error": {"kind": "no_space", "what": "it needs 9 TB and the cache holds 2 of 4 TB"}})";

  static std::string progress(const std::string& phase, const std::string& more) {
    return R"({"event": "progress", "dataset": "phase2", "phase": ")" + phase +
           R"(", "bytes_done": 1, "bytes_total": 10)" + more + "}";
  }
  Prefetch() {
    program.client.answer("POST /v1/stagings", 202,
                          R"({"id": "7", "verb": "prefetch", "subject": "phase2"})");
  }
  Program program;
};

TEST_F(Prefetch, ConvertsADurationToAnAbsoluteTime) {
  program.client.stream_once(kEvents, {{R"({"event": "done", "result": {"datasets": []}})"}});
  EXPECT_EQ(program.run({"prefetch", "phase2", "--by", "2h"}), 0);
  EXPECT_EQ(program.client.sent.at(0),
            R"(POST /v1/stagings {"datasets":["phase2"],"prefetch":true,"by":"2026-11-20T17:21:26Z"})");
}

TEST_F(Prefetch, ReportsItsLeaseAndItsDelay) {
  program.client.stream_once(
      kEvents, {{R"({"event": "done", "result": {"datasets": [{"name": "phase2", "state": "ready",
    "path": "/c/phase2/1", "bytes": 142000000000, "files": 9, "seconds": 600, "bytes_per_second": 236000000,
    "served_from": "copied", "lease": "prefetch:phase2", "by": "2026-11-20T15:00:00Z", "late_s": 900}]}})"}});
  EXPECT_EQ(program.run({"prefetch", "phase2"}), 0);
  EXPECT_EQ(program.output(), "") << "no path: nothing holds it yet";
  EXPECT_NE(program.errors().find("15 min 00 s later than it was asked for"), std::string::npos)
      << program.errors();
  EXPECT_NE(program.errors().find("`spark-stage release prefetch:phase2` ends that"), std::string::npos);
}

TEST_F(Prefetch, WarnsThatItWillBeLate) {
  program.client.stream_once(kEvents,
                             {{progress("copying", R"(, "eta_s": 60, "late_s": 720, "bottleneck": "source")"),
                               R"({"event": "done", "result": {"datasets": []}})"}});
  EXPECT_EQ(program.run({"prefetch", "phase2"}), 0);
  EXPECT_NE(program.errors().find("12 min 00 s too late"), std::string::npos) << program.errors();
}

TEST_F(Prefetch, DetachReturnsOnceSpaceIsReserved) {
  program.client.stream_once(
      kEvents, {{progress("walking", ""), progress("queued", R"(, "has_room": true)"), kNoSpace}});
  EXPECT_EQ(program.run({"prefetch", "phase2", "--detach"}), 0);
  EXPECT_EQ(program.output(), "7\n");
}

TEST_F(Prefetch, DetachFailsWithoutSpace) {
  program.client.stream_once(kEvents, {{progress("walking", ""), kNoSpace}});
  EXPECT_EQ(program.run({"prefetch", "phase2", "--detach"}), 5);
  EXPECT_EQ(program.output(), "");
}

TEST_F(Prefetch, DetachDoesNotWaitForAnUnavailableVolume) {
  program.client.stream_once(kEvents, {{progress("stalled", ""), kNoSpace}});
  EXPECT_EQ(program.run({"prefetch", "phase2", "--detach"}), 0);
}

TEST_F(Prefetch, WaitsForItsSourceAsLongAsItIsTold) {
  program.client.stream_once(kEvents, {{R"({"event": "done", "result": {"datasets": []}})"}});
  EXPECT_EQ(program.run({"prefetch", "phase2", "--wait", "2h"}), 0);
  EXPECT_EQ(program.client.sent.at(0),
            R"(POST /v1/stagings {"datasets":["phase2"],"wait_s":7200,"prefetch":true})");
}

TEST_F(Prefetch, AnInvalidTimeIsAUsageError) {
  EXPECT_EQ(program.run({"prefetch", "phase2", "--wait", "long"}), 2);
  EXPECT_EQ(program.run({"prefetch", "phase2", "--by", "soon"}), 2);
  EXPECT_TRUE(program.client.sent.empty());
}

}  // namespace
}  // namespace spark::cli
