#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

constexpr char kStep3Whole[] =
    R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30, "written": 31}]}}')";

TEST_F(WatchedOutputTest, TheSourcesOfAcceptedTransfersAreNamedToTheWorkerThatRemovesCheckpoints) {
  settings.outputs["run7"].keep_local = 1;
  away = Error{Errc::Unavailable, "volume other is stalled", ""};
  StageOutRequest other;
  other.source = "/out/step-2";
  other.volume = "other";
  other.path = "kept/step-2";
  other.asker.uid = 1000;
  asio::co_spawn(context, outs->start(), asio::detached);
  ASSERT_TRUE(run_until(context, [&] { return outs->sources().has_value(); }));
  const auto waiting = await(context, outs->send(std::move(other)));
  ASSERT_TRUE(waiting && *waiting);
  ASSERT_TRUE(run_until(context, [&] { return (**waiting)->progress().has_value(); }));
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", kStep3Whole);
  watched = VolumePlace{"/v", "/v"};
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("tidies.log").empty(); }));
  EXPECT_THAT(text_of("tidies.log"), HasSubstr(R"("remove":{"step-2":21},"sources":["/out/step-2"])"));
  EXPECT_TRUE((**waiting)->cancel().has_value());
}

TEST_F(WatchedOutputTest, NothingIsRemovedUntilTheRecordsOfEarlierTransfersAreRead) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", kStep3Whole);
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 4));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
  asio::co_spawn(context, outs->start(), asio::detached);
  EXPECT_TRUE(run_until(
      context, [&] { return text_of("tidies.log").find(R"("remove":{"step-2":21})") != std::string::npos; }));
}

TEST_F(WatchedOutputTest, NothingIsRemovedUntilTheRecordOfSentCheckpointsIsRead) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", kStep3Whole);
  worker.on("recorded", R"(read -r request; case "$request" in *stage-outs/outputs*) [ -e readable ] ||
    { echo '{"error": {"kind": "failed", "what": "Input/output error", "hint": ""}}'; exit; } ;; esac
    echo '{"result": {"records": []}}')");
  asio::co_spawn(context, outs->start(), asio::detached);
  ASSERT_TRUE(run_until(context, [&] { return outs->sources().has_value(); }));
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 4));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
  std::ofstream(worker.folder() / "readable") << "now";
  EXPECT_TRUE(run_until(
      context, [&] { return text_of("tidies.log").find(R"("remove":{"step-2":21})") != std::string::npos; }));
}

// "Superseded" is no proof: the copy on the volume may lack files.
TEST_F(WatchedOutputTest, NothingIsRemovedUnlessTheCopyThatItDependsOnIsWhole) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", note_request("lists.log") +
                                  R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30}]}}')");
  asio::co_spawn(context, outs->start(), asio::detached);
  watches->apply(settings);
  ASSERT_TRUE(run_until(
      context, [&] { return text_of("lists.log").find(R"("check":["step-3"])") != std::string::npos; }));
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 3));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
}

// The published one may be of an earlier attempt of the job.
TEST_F(WatchedOutputTest, AShardIsRemovedOnlyIfThatVeryShardIsPublished) {
  settings.outputs["run7"].keep_local = 1;
  settings.outputs["run7"].nodes = 2;
  const std::string both = R"([{"name": "step-3", "mtime_ns": 30, "written": 31},
                               {"name": "step-2", "mtime_ns": 20, "written": 21}])";
  const auto listed = [&](const std::string& same) {
    worker.on("list-published", note_request("lists.log") + R"(echo '{"result": {"copies": )" + both +
                                    R"(, "same": )" + same + "}}' | tr -d '\\n'; echo");
  };
  worker.on("scan-output", kTwoThere);
  listed("[]");
  asio::co_spawn(context, outs->start(), asio::detached);
  watches->apply(settings);
  ASSERT_TRUE(run_until(context,
                        [&] { return text_of("lists.log").find(R"("local":"/out")") != std::string::npos; }));
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 3));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
  listed(R"(["step-2"])");
  settings.outputs["run7"].keep = 5;
  watches->apply(settings);
  EXPECT_TRUE(calls("tidy-output", 1));
}

// The job may have saved it again in place, and the record of what was sent be lost.
TEST_F(WatchedOutputTest, ACheckpointIsRemovedOnlyIfItsCopyHasThatVeryState) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  const auto listed = [&](const std::string& written) {
    worker.on("list-published",
              R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30, "written": 31},
                 {"name": "step-2", "mtime_ns": 20, "written": )" +
                  written + "}]}}' | tr -d '\\n'; echo");
  };
  listed("20");
  asio::co_spawn(context, outs->start(), asio::detached);
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] {
    return text_of("stage-outs.log").find("/out/step-2") != std::string::npos;
  })) << "it is sent again";
  EXPECT_EQ(worker.calls("tidy-output"), 0);
  listed("21");
  EXPECT_TRUE(calls("tidy-output", 1));
}

TEST_F(WatchedOutputTest, ARemovalThatFailsIsShownAndNotRepeatedAtEachCheck) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", kStep3Whole);
  worker.on("tidy-output",
            R"(echo '{"result": {"removed": [], "failed": {"kind": "denied", "what": "step-2 is another user)"
            R"(s", "hint": ""}}}')");
  asio::co_spawn(context, outs->start(), asio::detached);
  watches->apply(settings);
  ASSERT_TRUE(calls("tidy-output", 1));
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 4));
  EXPECT_EQ(worker.calls("tidy-output"), 1);
  EXPECT_THAT(std::string(watches->find("run7")->to_json().at("reason").as_string()),
              HasSubstr("deleting checkpoints beyond keep_local in /out"));
}

TEST_F(WatchedOutputTest, ADeletionEndsWithTheConfigurationThatWantedIt) {
  settings.outputs["run7"].keep_local = 1;
  worker.on("scan-output", kTwoThere);
  worker.on(
      "list-published",
      R"(read -r request; case "$request" in *check*) touch asked; until [ -e go ]; do sleep 0.02; done;; esac; )" +
          std::string(kStep3Whole));
  asio::co_spawn(context, outs->start(), asio::detached);
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "asked"); }));
  settings.outputs["run7"].keep_local = 5;
  watches->apply(settings);
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 3));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
}

}  // namespace
}  // namespace spark::outputs
