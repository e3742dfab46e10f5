#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

constexpr char kNewer[] =
    R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31, "bytes": 5, "incomplete": ""}]}}')";

// The job saves step-3 and deletes step-2 while step-2 is sent.
class HeldSourcesTest : public WatchedOutputTest {
 protected:
  HeldSourcesTest() {
    asio::co_spawn(context, outs->start(), asio::detached);
    worker.on("stage-out",
              note_request("stage-outs.log") + "until [ -e go ]; do sleep 0.02; done; " +
                  R"(echo '{"error": {"kind": "not_found", "what": "it is gone", "hint": ""}}')");
    watches->apply(settings);
  }
  void fall_behind() {
    ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
    worker.on("scan-output", kNewer);
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
  EXPECT_TRUE(run_until(context, [&] {
    return text_of("tidies.log").find(R"("path":"/out","release":["step-3"])") != std::string::npos;
  })) << "once its sending has ended";
}

TEST_F(HeldSourcesTest, WhatCanNotBeHeldIsSentAnywayAndTheReasonIsShown) {
  worker.on("hold-source",
            R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  fall_behind();
  ASSERT_TRUE(run_until(context, [&] {
    return text_of("stage-outs.log").find(R"("source":"/out/step-3")") != std::string::npos;
  }));
  EXPECT_TRUE(run_until(context, [&] {
    return watches->find("run7")->facts().reason.find("could not be held") != std::string::npos;
  })) << watches->find("run7")->facts().reason;
}

TEST_F(HeldSourcesTest, WhatAnEarlierDaemonHeldIsReleased) {
  worker.on("scan-output",
            R"(echo '{"result": {"uid": 1000, "checkpoints": [], "held": [".step-1.new", "step-0"]}}')");
  EXPECT_TRUE(run_until(context, [&] {
    return text_of("tidies.log").find(R"("release":[".step-1.new","step-0"])") != std::string::npos;
  }));
}

}  // namespace
}  // namespace spark::outputs
