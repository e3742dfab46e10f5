#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

// The job saves step-3 and deletes step-2 while step-2 is sent.
class HeldSourcesTest : public WatchedOutputTest {
 protected:
  HeldSourcesTest() {
    asio::co_spawn(context, outs->start(), asio::detached);
    worker.on("release-held", note_request("releases.log") + R"(echo '{"result": {}}')");
    worker.on("stage-out",
              note_request("stage-outs.log") + "until [ -e go ]; do sleep 0.02; done; " +
                  R"(echo '{"error": {"kind": "not_found", "what": "it is gone", "hint": ""}}')");
    watches->apply(settings);
  }
  // What the job saves next, and where it is held.
  static std::string newer(int holds) {
    return R"(echo '{"result": {"uid": 1000, "held_in": "/.out.spark-held", "holds": )" +
           std::to_string(holds) + R"(, "checkpoints": [{"name": "step-3", "mtime_ns": 30,)" +
           R"("written": 31, "bytes": 5, "incomplete": ""}]}}')";
  }
  void fall_behind() {
    ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
    worker.on("scan-output", newer(0));
    std::ofstream(worker.folder() / "go") << "now";
  }
};

TEST_F(HeldSourcesTest, OnceSendingFallsBehindTheNewestCheckpointIsHeld) {
  worker.on("hold-source",
            note_request("holds.log") + R"(echo '{"result": {"source": "/.out.spark-held/step-3"}}')");
  fall_behind();
  ASSERT_TRUE(run_until(context, [&] {
    return text_of("stage-outs.log").find(R"("source":"/.out.spark-held/step-3")") != std::string::npos;
  }));
  EXPECT_THAT(text_of("holds.log"), HasSubstr(R"("path":"/out","name":"step-3","written":31)"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("hurries":true)"));
  EXPECT_TRUE(watches->find("run7")->facts().is_behind);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("releases.log").empty(); }))
      << "once its sending has ended";
  EXPECT_THAT(text_of("releases.log"), HasSubstr(R"("folder":"/.out.spark-held","keep":[])"));
}

// It is no reason any more once everything is sent.
TEST_F(HeldSourcesTest, WhatCanNotBeHeldIsSentAnywayAndTheReasonIsShownMeanwhile) {
  worker.on("hold-source",
            R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  const auto is_shown = [&] {
    return watches->find("run7")->facts().reason.find("could not be held") != std::string::npos;
  };
  ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
  worker.on("stage-out", note_request("stage-outs.log") + "until [ -e sent ]; do sleep 0.02; done; " +
                             R"(echo '{"result": {"state": "ready", "served_from": "copied"}}')");
  fall_behind();
  ASSERT_TRUE(run_until(context, [&] {
    return text_of("stage-outs.log").find(R"("source":"/out/step-3")") != std::string::npos;
  }));
  EXPECT_TRUE(run_until(context, is_shown)) << watches->find("run7")->facts().reason;
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30}]}}')");
  std::ofstream(worker.folder() / "sent") << "now";
  EXPECT_TRUE(run_until(context, [&] { return !is_shown(); }));
}

// The volume is away, and the job's folder is gone.
TEST_F(HeldSourcesTest, WhatAnEarlierDaemonHeldIsReleased) {
  worker.on("scan-output",
            R"(echo '{"result": {"missing": "/out is gone", "held_in": "/.out.spark-held", "holds": 1}}')");
  EXPECT_TRUE(run_until(context, [&] {
    return text_of("releases.log").find(R"("folder":"/.out.spark-held","keep":[])") != std::string::npos;
  }));
}

TEST_F(HeldSourcesTest, AUsersFolderOfSuchANameIsLeftAlone) {
  StageOutRequest manual;
  manual.source = "/data/.important.spark-held/a.pt";
  manual.volume = "checkpoints";
  manual.path = "kept/a.pt";
  manual.asker.uid = 1000;
  const auto job = await(context, outs->send(std::move(manual)));
  ASSERT_TRUE(job && *job);
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(run_until(context, [&] { return !(**job)->is_running(); }));
  EXPECT_EQ(text_of("releases.log").find("important"), std::string::npos);
}

// The end of a hard link is a change of the file, for the one who reads it by its other name.
TEST_F(HeldSourcesTest, NothingIsHeldOrReleasedThatAnotherCopyReads) {
  StageOutRequest manual;
  manual.source = "/out/step-3";
  manual.volume = "checkpoints";
  manual.path = "kept/step-3";
  manual.asker.uid = 1000;
  const auto job = await(context, outs->send(std::move(manual)));
  ASSERT_TRUE(job && *job);
  ASSERT_TRUE(run_until(context, [&] { return outs->sources().has_value(); }));
  const auto held = await(context, outs->held().hold("/out/step-3", "/.out.spark-held", 31));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->error().kind, Errc::Unavailable);
  EXPECT_EQ(worker.calls("hold-source"), 0);
  worker.on("scan-output", newer(9));
  ASSERT_TRUE(run_until(context, [&] { return !text_of("releases.log").empty(); }));
  EXPECT_THAT(text_of("releases.log"), HasSubstr(R"("step-3")")) << "it stays";
  EXPECT_TRUE((**job)->cancel().has_value());
  std::ofstream(worker.folder() / "go") << "now";
}

}  // namespace
}  // namespace spark::outputs
