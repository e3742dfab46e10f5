// jobs, cancel, wait --job: for jobs started by any user
#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class JobVerbs : public ::testing::Test {
 protected:
  static constexpr char kRunning[] =
      R"({"id": "7", "verb": "stage", "subject": "imagenet", "state": "running", "started": "2026-11-20T15:21:00Z"})";
  static constexpr char kProgress[] =
      R"({"event": "progress", "dataset": "imagenet", "phase": "copying", "bytes_done": 1, "bytes_total": 9})";
  static constexpr char kNoSpace[] = R"("error": {"kind": "no_space", "what": "imagenet needs 142 GB"})";

  JobVerbs() { program.client.answer("GET /v1/jobs/7", 200, kRunning); }
  bool was_cancelled() const {
    return std::ranges::any_of(program.client.sent,
                               [](const auto& sent) { return sent.starts_with("DELETE"); });
  }
  bool tells(const std::string& words) const { return program.errors().find(words) != std::string::npos; }
  Program program;
};

TEST_F(JobVerbs, WaitEndsWithTheJob) {
  program.client.stream_once("/v1/jobs/7/events", {{kProgress, R"({"event": "done", "result": {}})"}});
  EXPECT_EQ(program.run({"wait", "--job", "7"}), 0);
  EXPECT_TRUE(tells("imagenet: copying")) << program.errors();
}

TEST_F(JobVerbs, WaitHasTheExitStatusOfTheJob) {
  program.client.stream_once("/v1/jobs/7/events",
                             {{std::string(R"({"event": "failed", )") + kNoSpace + "}"}});
  EXPECT_EQ(program.run({"wait", "--job", "7"}), 5);
  Program late;  // the job ended before the command
  late.client.answer("GET /v1/jobs/8", 200,
                     std::string(R"({"id": "8", "state": "failed", )") + kNoSpace + "}");
  EXPECT_EQ(late.run({"wait", "--job", "8"}), 5);
  EXPECT_EQ(late.client.sent.size(), 1u);
}

TEST_F(JobVerbs, WaitForAnUnknownJobIsNotFound) {
  EXPECT_EQ(program.run({"wait", "--job", "9"}), 3);
}

TEST_F(JobVerbs, WaitTimesOutDuringProgressWithoutCancellingTheJob) {
  program.client.stream_once("/v1/jobs/7/events",
                             {std::vector<std::string>(20, kProgress), {}, Duration(10'000)});
  EXPECT_EQ(program.run({"wait", "--job", "7", "--timeout", "90s"}), 124);
  EXPECT_TRUE(tells("job 7 (stage imagenet) has not ended after 1 min 30 s; it goes on")) << program.errors();
  EXPECT_FALSE(was_cancelled());
}

TEST_F(JobVerbs, WaitTimesOutWhileTheJobIsSilent) {
  FakeClient::Stream silent{{}, {Errc::TimedOut, "silent", ""}};
  silent.afterwards = [&] { program.timer.sleep(Duration(30'000)); };
  for (int i = 0; i < 4; ++i) program.client.stream_once("/v1/jobs/7/events", silent);
  EXPECT_EQ(program.run({"wait", "--job", "7", "--timeout", "90s"}), 124);
  EXPECT_FALSE(was_cancelled());
}

TEST_F(JobVerbs, AnInterruptedWaitDoesNotCancelTheJob) {
  FakeClient::Stream stream{{kProgress}, {Errc::Cancelled, "interrupted", ""}};
  stream.afterwards = [&] { program.stop = true; };
  program.client.stream_once("/v1/jobs/7/events", stream);
  EXPECT_EQ(program.run({"wait", "--job", "7"}), 130);
  EXPECT_TRUE(tells("interrupted; job 7 (stage imagenet) goes on")) << program.errors();
  EXPECT_FALSE(was_cancelled());
}

TEST_F(JobVerbs, WaitDoesNotMistakeAnotherJobForItsOwnAfterARestart) {
  Program restarted;
  restarted.client.answer("GET /v1/jobs/7", 200, R"({"id": "7", "key": "7-1f", "state": "running"})");
  restarted.client.stream_once("/v1/jobs/7-1f/events", {{kProgress}});
  EXPECT_EQ(restarted.run({"wait", "--job", "7"}), 4);
}

TEST_F(JobVerbs, WaitGoesOnWhenADaemonThatWasSilentAnswersAgain) {
  Program slow;
  slow.client.answer("GET /v1/jobs/7", 200, kRunning);
  slow.client.fail_once("GET /v1/jobs/7", {Errc::Unavailable, "silent for 10 s", ""});
  slow.client.fail_once("GET /v1/jobs/7", {Errc::Unavailable, "silent for 10 s", ""});
  slow.client.answer("GET /v1/jobs/7", 200, kRunning);
  slow.client.stream_once("/v1/jobs/7/events", {{kProgress}, {Errc::TimedOut, "silent", ""}});
  slow.client.stream_once("/v1/jobs/7/events", {{R"({"event": "done", "result": {}})"}});
  EXPECT_EQ(slow.run({"wait", "--job", "7"}), 0) << slow.errors();
}

TEST_F(JobVerbs, WaitForAJobOfADaemonThatStaysAwayEndsByItsTimeoutOrAfterAMinute) {
  for (const bool has_timeout : {true, false}) {
    Program away;
    away.client.answer("GET /v1/jobs/7", 200, kRunning);
    away.client.fail_once("GET /v1/jobs/7", {Errc::Unavailable, "no process listens there", "start it"});
    away.client.stream_once("/v1/jobs/7/events", {{kProgress}});
    const SteadyTime begin = away.timer.steady();
    const std::vector<std::string> words{"wait", "--job", "7"};
    auto limited = words;
    limited.insert(limited.end(), {"--timeout", "20s"});
    EXPECT_EQ(away.run(has_timeout ? limited : words), has_timeout ? 124 : 4) << away.errors();
    EXPECT_LE(away.timer.steady() - begin, std::chrono::seconds(has_timeout ? 25 : 65));
  }
}

TEST_F(JobVerbs, WaitIsForVolumesOrForAJob) {
  EXPECT_EQ(program.run({"wait", "datasets", "--job", "7"}), 2);
  EXPECT_EQ(program.run({"wait"}), 2);
  EXPECT_TRUE(program.client.sent.empty());
}

TEST_F(JobVerbs, CancelContinuesAfterAJobThatCannotBeCancelled) {
  program.client.answer("DELETE /v1/jobs/7", 200, kRunning);
  EXPECT_EQ(program.run({"cancel", "6", "7"}), 3);
  EXPECT_EQ(program.output(), "job 7: cancelled\n");
}

TEST_F(JobVerbs, DetachPrintsHowToFollowAndCancelTheJob) {
  program.client.answer("POST /v1/stagings", 202, kRunning);
  EXPECT_EQ(program.run({"stage", "imagenet", "--detach"}), 0);
  EXPECT_EQ(program.output(), "7\n");
  EXPECT_EQ(program.errors(),
            "job 7 has begun: `spark-stage wait --job 7` follows it, `spark-stage cancel 7` ends it\n");
}

}  // namespace
}  // namespace spark::cli
