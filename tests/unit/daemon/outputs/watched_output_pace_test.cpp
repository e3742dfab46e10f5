// When an output is looked at, and what it says meanwhile.
#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

// `cpu_us`: what the look took of a core.
std::string look(const std::string& cpu_us) {
  return R"(echo '{"result": {"uid": 1000, "cpu_us": )" + cpu_us + R"(, "checkpoints": []}}')";
}

class WatchedOutputPaceTest : public WatchedOutputTest {
 protected:
  bool looks_again(std::chrono::milliseconds longest) {
    const int looks = worker.calls("scan-output");
    const auto end = std::chrono::steady_clock::now() + longest;
    run_until(context,
              [&] { return worker.calls("scan-output") > looks || std::chrono::steady_clock::now() > end; });
    return worker.calls("scan-output") > looks;
  }
  std::string unsent() {
    const auto shown = await(context, watches->find("run7")->look_now());
    return shown && *shown ? json::serialize((*shown)->at("unsent")) : "";
  }
};

// A flush of what the job has just saved takes minutes on a slow drive.
TEST_F(WatchedOutputPaceTest, ALookThatWaitsIsFollowedByTheNextAfterTheUsualPause) {
  worker.on("scan-output", "sleep 0.5; " + look("0"));
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 1));
  EXPECT_TRUE(looks_again(std::chrono::seconds(5)));
}

TEST_F(WatchedOutputPaceTest, ALookThatTakesLongOfACoreIsSeldom) {
  worker.on("scan-output", look("100000"));
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 1));
  EXPECT_FALSE(looks_again(std::chrono::milliseconds(500)));
  EXPECT_TRUE(looks_again(std::chrono::seconds(20)));
}

// The job's last checkpoint is still settling at the look that follows its end.
TEST_F(WatchedOutputPaceTest, TheEndOfAJobIsFollowedByTwoLooksAlsoIfItComesDuringOne) {
  worker.on("scan-output", "until [ -e go ]; do sleep 0.02; done; " + look("3600000000"));
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 1));
  ASSERT_TRUE(watches->find("run7")->job_ended());
  std::ofstream(worker.folder() / "go") << "now";
  EXPECT_TRUE(looks_again(std::chrono::seconds(20)));
  EXPECT_FALSE(looks_again(std::chrono::milliseconds(300)));
  ASSERT_TRUE(watches->find("run7")->job_ended());
  EXPECT_TRUE(looks_again(std::chrono::seconds(20)));
  EXPECT_TRUE(looks_again(std::chrono::seconds(20)));
}

TEST_F(WatchedOutputPaceTest, WhatIsUnsentHasTheReasonOfTheFailureOrRefusal) {
  worker.on("stage-out", R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return watches->find("run7")->facts().failures == 1; }));
  EXPECT_THAT(unsent(), HasSubstr("there is no room"));
  watched = place().value();
  away = Error{Errc::Refused, "volume checkpoints is published", ""};
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
               "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)");
  EXPECT_TRUE(run_until(
      context, [&] { return unsent().find("volume checkpoints is published") != std::string::npos; }));
  worker.on("stage-out", R"(echo '{"result": {"state": "ready", "served_from": "copied"}}')");
  away.reset();
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent > 0; }));
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30}]}}')");
  EXPECT_TRUE(run_until(context, [&] { return watches->find("run7")->to_json().at("reason").is_null(); }));
}

// Its own sending takes seconds, and then waits for a host that is slow.
TEST_F(WatchedOutputPaceTest, AHostThatWaitsForOthersIsNotBehind) {
  settings.outputs["run7"].nodes = 2;
  worker.on(
      "scan-output",
      R"(s=$((1 + $(cat stage-outs.log 2>/dev/null | wc -l))); echo '{"result": {"uid": 1000, "checkpoints":)"
      R"( [{"name": "step-'$s'", "mtime_ns": '$s', "written": '$s', "bytes": 5, "incomplete": ""}]}}')");
  worker.on("stage-out",
            note_request("stage-outs.log") +
                R"(echo '{"result": {"state": "waiting", "served_from": "copied", "hosts": ["spark1"]}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("stage-out", 4));
  EXPECT_EQ(text_of("stage-outs.log").find(R"("hurries":true)"), std::string::npos);
  EXPECT_FALSE(watches->find("run7")->facts().is_behind);
}

// The deletion of older copies may wait for a volume that is lost meanwhile.
TEST_F(WatchedOutputTest, ACheckpointIsKnownToBeSentWhileOlderOnesAreDeleted) {
  worker.on("prune-output", note_request("prunes.log") + "sleep 60");
  watches->apply(settings);
  ASSERT_TRUE(run_until(
      context, [&] { return text_of("records.log").find(R"("sent":{"step-2":21})") != std::string::npos; }));
  EXPECT_EQ(outs->transfers().size(), 1u);
  EXPECT_FALSE(outs->list().front().as_object().contains("published")) << "the API has no such field";
  away = Error{Errc::Unavailable, "volume checkpoints is connecting", ""};
  const auto shown = await(context, watches->find("run7")->look_now());
  ASSERT_TRUE(shown && *shown);
  EXPECT_TRUE((*shown)->at("unsent").is_null()) << json::serialize((*shown)->at("unsent"));
  EXPECT_TRUE(outs->transfers().front()->job()->cancel());
}

// It was killed, or the volume was lost before it had moved the pointer.
TEST_F(WatchedOutputTest, ACheckpointIsKnownToBeSentAsSoonAsItIsPublishedWhateverItsWorkerDoesThen) {
  worker.on("stage-out", R"(echo '{"progress": {"published": true}}'; sleep 60)");
  watches->apply(settings);
  ASSERT_TRUE(run_until(
      context, [&] { return text_of("records.log").find(R"("sent":{"step-2":21})") != std::string::npos; }));
  worker.on("stage-out", R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  away = Error{Errc::Refused, "volume checkpoints is held by spark2", ""};
  ASSERT_TRUE(run_until(context, [&] { return outs->transfers().empty(); }));
  const auto shown = await(context, watches->find("run7")->look_now());
  ASSERT_TRUE(shown && *shown);
  EXPECT_TRUE((*shown)->at("unsent").is_null()) << json::serialize((*shown)->at("unsent"));
}

// All files of such a copy are looked at, for up to `timings.scan`, while a job may wait for `latest`.
TEST_F(WatchedOutputTest, OnlyACopyThatMayBeOfAnotherStateIsComparedInFull) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  worker.on("list-published", note_request("lists.log") + R"(echo '{"result": {"copies": []}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 3));
  EXPECT_EQ(text_of("lists.log").find("check"), std::string::npos) << "step-2 is not there";
  worker.on("list-published",
            note_request("lists.log") +
                R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}]}}')");
  ASSERT_TRUE(run_until(
      context, [&] { return text_of("records.log").find(R"("sent":{"step-2":21})") != std::string::npos; }));
  EXPECT_THAT(text_of("lists.log"), HasSubstr(R"("check":["step-2"])"));
  const std::string before = text_of("lists.log");
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 3));
  EXPECT_EQ(text_of("lists.log").find("check", before.size()), std::string::npos) << "it is known now";
}

}  // namespace
}  // namespace spark::outputs
