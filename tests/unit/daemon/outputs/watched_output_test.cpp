#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

constexpr char kOlderBegunElsewhere[] =
    R"(echo '{"result": {"copies": [], "begun": [
       {"name": "step-3", "own_written": 31, "has_others": false},
       {"name": "step-2", "own_written": 0, "has_others": true}]}}' | tr -d '\n'; echo)";

TEST_F(WatchedOutputTest, ACompleteCheckpointIsSentAsItsOwnerWithTheConfiguredRetention) {
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return outs->totals().sent > 0; }));
  EXPECT_THAT(text_of("scans.log"), HasSubstr(R"("path":"/out","rule":"marker:DONE")"));
  for (const char* part : {R"("source":"/out/step-2")", R"("path":"run7/step-2")", R"("uid":1000)",
                           R"("rule":"marker:DONE")", R"("written":21)"})
    EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(part));
  EXPECT_THAT(text_of("prunes.log"),
              HasSubstr(R"("keep":3,"keep_every":0,"rule":"marker:DONE","spared":["step-0"])"));
  EXPECT_THAT(text_of("records.log"), HasSubstr(R"("flushed":{"step-2":21})"));
}

TEST_F(WatchedOutputTest, APublishedCheckpointIsNotSentAgain) {
  worker.on(
      "list-published",
      R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}], "latest": "step-2"}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 3));
  EXPECT_EQ(worker.calls("stage-out"), 0);
  EXPECT_EQ(worker.calls("point-output"), 0);
  EXPECT_EQ(worker.calls("tidy-output"), 0);
  const json::object shown = watches->find("run7")->to_json();
  EXPECT_EQ(shown.at("latest_published"), "step-2");
  EXPECT_EQ(shown.at("backlog_bytes"), 0);
}

// A sending that was interrupted after it had published the checkpoint.
TEST_F(WatchedOutputTest, APointerThatDoesNotNameTheHighestCheckpointIsMoved) {
  worker.on(
      "list-published",
      R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}], "latest": "step-1"}}')");
  worker.on("point-output", note_request("points.log") + R"(echo '{"result": {}}')");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("points.log").empty(); }));
  EXPECT_THAT(text_of("points.log"), HasSubstr(R"("path":"run7","uid":1000,"rule":"marker:DONE")"));
  const int looks = worker.calls("scan-output");
  ASSERT_TRUE(calls("scan-output", looks + 3));
  EXPECT_EQ(worker.calls("point-output"), 1) << "not at each look, if that can't be helped";
}

TEST_F(WatchedOutputTest, ACheckpointRewrittenAfterItsTransferIsSentAgain) {
  worker.on("list-published",
            R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}]}}')");
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-2": 15}, "sent": {"step-2": 15}}}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  ASSERT_TRUE(run_until(
      context, [&] { return text_of("records.log").find(R"("sent":{"step-2":21})") != std::string::npos; }));
  EXPECT_EQ(worker.calls("stage-out"), 1);
}

TEST_F(WatchedOutputTest, TheStatusSaysWhyTheNewestCheckpointIsUnsent) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  watches->apply(settings);
  const auto told = [&] {
    const auto shown = await(context, watches->find("run7")->look_now());
    return *shown ? json::serialize((*shown)->at("unsent")) : (*shown).error().message();
  };
  EXPECT_EQ(told(), R"("step-2 is not on checkpoints:run7; `spark-stage stage-out run7` sends it")");
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  EXPECT_EQ(told(), R"("step-2 is not on checkpoints:run7 yet: volume checkpoints is stalled")");
  away.reset();
  worker.on("list-published",
            R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}]}}')");
  EXPECT_EQ(told(), "null");
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
               "bytes": 5, "incomplete": "it has no DONE yet"}]}}' | tr -d '\n'; echo)");
  EXPECT_EQ(told(), R"("step-3 is not on checkpoints:run7, as it is not complete: it has no DONE yet")");
}

TEST_F(WatchedOutputTest, WithoutACompletionRuleCheckpointsAreSentOnlyOnRequest) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  EXPECT_EQ(worker.calls("stage-out"), 0);
  EXPECT_EQ(watches->find("run7")->job_ended().error().kind, Errc::Refused);
  const auto job = await(context, watches->find("run7")->send_newest());
  ASSERT_TRUE(*job) << (*job).error().message();
  EXPECT_TRUE(run_until(context, [&] { return !(**job)->is_running(); }));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr("step-2"));
}

// Without a rule, nothing tells whether what is there now is complete.
TEST_F(WatchedOutputTest, ARepeatedRequestIsForTheCheckpointThatWasAccepted) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  const auto repeat = [&](const std::string& name, std::int64_t written) {
    auto job = await(context, watches->find("run7")->send_newest(Accepted{name, written}));
    EXPECT_TRUE(job && (*job || job->error().kind == Errc::Mismatch));
    if (job && *job) run_until(context, [&] { return !(**job)->is_running(); });
    return job && *job ? json::serialize((**job)->to_json().at("accepted")) : "mismatch";
  };
  EXPECT_EQ(repeat("step-2", 21), R"({"written":"21","checkpoint":"step-2"})");
  EXPECT_EQ(repeat("step-1", 11), "mismatch") << "it is not complete any more";
  EXPECT_EQ(repeat("step-2", 20), R"({"written":"20","checkpoint":"step-2"})") << "its copy says more";
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":20)"));
  EXPECT_EQ(repeat("step-0", 1), R"({"written":"1","checkpoint":"step-0"})") << "it may be published";
}

// Any user may ask, with a body of their own, for what the owner's job has not completed.
TEST_F(WatchedOutputTest, ARepeatedRequestSendsNothingThatIsNoCompleteCheckpoint) {
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
               "changed_ns": 30, "bytes": 5, "incomplete": "it has no DONE yet"}],
               "held_in": "/.out.spark-held"}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  const auto refused = [&](const std::string& name, std::int64_t written) {
    const auto job = await(context, watches->find("run7")->send_newest(Accepted{name, written}));
    return job && !*job && job->error().kind == Errc::Mismatch;
  };
  EXPECT_TRUE(refused("step-3", 31));
  EXPECT_TRUE(refused("step-3", 30)) << "a copy knows it by its last change, too";
  EXPECT_EQ(worker.calls("stage-out"), 0);
  // A file beside the checkpoints, and another name of the newest one: that may be on the volume.
  for (const char* name : {"config.json", "logs", "last.ckpt"}) {
    EXPECT_FALSE(refused(name, 7));
    EXPECT_TRUE(run_until(context, [&] {
      return text_of("stage-outs.log").find(R"("source":"/.out.spark-held/)" + std::string(name)) !=
             std::string::npos;
    })) << name;
  }
  EXPECT_THAT(text_of("stage-outs.log"), testing::Not(HasSubstr(R"("source":"/out/)")));
}

// While the volume is away, each has a record and counts as one of the owner's, who may send a thousand.
TEST_F(WatchedOutputTest, RequestsForWhatIsNotHereLeaveTheOwnersShareToTheOwner) {
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  worker.on("scan-output",
            R"(echo '{"result": {"uid": 1000, "checkpoints": [], "held_in": "/.out.spark-held"}}')");
  watches->apply(settings);
  const auto is_taken = [&](int step) {
    const Accepted accepted{"step-" + std::to_string(step), 7};
    const auto job = await(context, watches->find("run7")->send_newest(accepted));
    EXPECT_TRUE(job && (*job || job->error().kind == Errc::Unavailable));
    return job && *job;
  };
  int taken = 0;
  while (taken < 50 && is_taken(taken)) ++taken;
  EXPECT_EQ(taken, 20);
  EXPECT_TRUE(is_taken(0)) << "it joins its job";
  EXPECT_EQ(outs->transfers_of(1000), 20U);
}

// As by two of its clients after a restart of the daemon, while the volume is away.
TEST_F(WatchedOutputTest, AFailureIsCountedOnceHoweverOftenUsersAskedInTurn) {
  worker.on("scan-output", kTwoThere);
  worker.on("stage-out",
            "until [ -e go -o ! -e worker ]; do sleep 0.02; done; "
            R"(echo '{"error": {"kind": "mismatch", "what": "it changed", "hint": ""}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  for (int times = 0; times < 3; ++times) {
    for (const Accepted& accepted : {Accepted{"step-2", 21}, Accepted{"step-3", 31}}) {
      const auto job = await(context, watches->find("run7")->send_newest(accepted));
      ASSERT_TRUE(job && *job);
    }
  }
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(run_until(context, [&] { return outs->totals().failed == 2; }));
  ASSERT_TRUE(calls("scan-output", worker.calls("scan-output") + 2));
  EXPECT_EQ(watches->find("run7")->facts().failures, 1U);
}

TEST_F(WatchedOutputTest, AFailedTransferIsRetriedOnlyAfterAPauseOrWhenTheJobEnds) {
  worker.on("stage-out", R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return watches->find("run7")->facts().failures == 1; }));
  const int looks = worker.calls("scan-output");
  ASSERT_TRUE(calls("scan-output", looks + 3));
  EXPECT_THAT(std::string(watches->find("run7")->to_json().at("reason").as_string()),
              HasSubstr("there is no room"));
  EXPECT_EQ(worker.calls("stage-out"), 1);
  ASSERT_TRUE(watches->find("run7")->job_ended());
  EXPECT_TRUE(calls("stage-out", 2)) << "once its job has ended, without the pause";
}

TEST_F(WatchedOutputTest, ACheckpointThatWasSavedAgainSinceItsTransferFailedIsSentWithoutAPause) {
  worker.on("stage-out", note_request("stage-outs.log") +
                             R"(echo '{"error": {"kind": "mismatch", "what": "it changed", "hint": ""}}')");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return watches->find("run7")->facts().failures == 1; }));
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-2", "mtime_ns": 20, "written": 29,
       "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)");
  ASSERT_TRUE(calls("stage-out", 2));
  EXPECT_TRUE(run_until(
      context, [&] { return text_of("stage-outs.log").find(R"("written":29)") != std::string::npos; }));
}

TEST_F(WatchedOutputTest, NothingIsSentToAnUnavailableVolumeAndTheReasonIsShown) {
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  EXPECT_EQ(worker.calls("stage-out"), 0);
  EXPECT_EQ(watches->find("run7")->to_json().at("reason"), "volume checkpoints is stalled");
  away.reset();
  EXPECT_TRUE(calls("stage-out", 1));
}

TEST_F(WatchedOutputTest, AShardThatAnotherHostWaitsForIsSentBeforeANewerCheckpoint) {
  settings.outputs["run7"].nodes = 2;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", kOlderBegunElsewhere);
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("source":"/out/step-2")"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("marker":"DONE")"));
}

TEST_F(WatchedOutputTest, WhileTheVolumeIsAwayTheBacklogStays) {
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return watches->find("run7")->facts().backlog == 5; }));
}

TEST_F(WatchedOutputTest, WhileTheVolumeIsAwayACheckpointThatWasSentIsNotCalledUnsent) {
  worker.on("list-published",
            R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 20, "written": 21}]}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 2));
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  const auto shown = await(context, watches->find("run7")->look_now());
  ASSERT_TRUE(*shown);
  EXPECT_TRUE((*shown)->at("unsent").is_null()) << json::serialize((*shown)->at("unsent"));
  EXPECT_EQ((*shown)->at("backlog_bytes"), 0);
}

TEST_F(WatchedOutputTest, IfANewerCheckpointWaitsWhenASendingEndsTheNextLeavesNoShareOfTheDrive) {
  worker.on("scan-output",
            "if [ -s stage-outs.log ]; then " + std::string(kTwoThere) + "; else " + kOneThere + "; fi");
  watches->apply(settings);
  ASSERT_TRUE(
      run_until(context, [&] { return text_of("stage-outs.log").find("/out/step-3") != std::string::npos; }));
  const std::string sent = text_of("stage-outs.log");
  EXPECT_THAT(sent.substr(0, sent.find('\n')), HasSubstr(R"("hurries":false)"));
  EXPECT_THAT(sent.substr(sent.find('\n')), HasSubstr(R"("hurries":true)"));
}

TEST_F(WatchedOutputTest, TimesInTheFutureAreShown) {
  worker.on("scan-output",
            R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-2", "mtime_ns": 20,
    "written": 21, "bytes": 5, "incomplete": "", "is_in_future": true}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] {
    return watches->find("run7")->facts().reason.find("later than this host's clock") != std::string::npos;
  }));
}

TEST_F(WatchedOutputTest, ARequestedTransferThatWaitsForOtherHostsBlocksNoOther) {
  settings.outputs["run7"].nodes = 2;
  worker.on("scan-output", kTwoThere);
  worker.on("stage-out",
            note_request("stage-outs.log") +
                R"(echo '{"result": {"state": "waiting", "served_from": "copied", "hosts": ["spark1"]}}')");
  // Nothing is sent unasked: the volume has a newer one.
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-9", "mtime_ns": 90}]}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 1));
  const auto asked = await(context, watches->find("run7")->send_newest());
  ASSERT_TRUE(*asked) << (*asked).error().message();
  worker.on("list-published", kOlderBegunElsewhere);
  EXPECT_TRUE(run_until(context, [&] {
    return text_of("stage-outs.log").find(R"("source":"/out/step-2")") != std::string::npos;
  }));
  EXPECT_TRUE((**asked)->is_running());
  EXPECT_TRUE((**asked)->cancel().has_value());
}

TEST_F(WatchedOutputTest, ARewrittenShardIsShownAsSendingUntilItIsOnTheVolume) {
  settings.outputs["run7"].nodes = 2;
  const auto there = [](const std::string& own) {
    return R"(echo '{"result": {"copies": [], "begun": [{"name": "step-2", "own_written": )" + own +
           R"(, "has_others": false, "others_progress": 7}]}}')";
  };
  worker.on("list-published", there("5"));
  worker.on(
      "stage-out",
      R"(echo '{"progress": {"phase": "copying"}}'; until [ -e go -o ! -e worker ]; do sleep 0.02; done)");
  watches->apply(settings);
  const auto pending_is_sending = [&] {
    const auto latest = await(context, watches->find("run7")->latest());
    return get_bool((**latest).at("pending").as_object(), "is_sending");
  };
  bool is_sending = false;
  for (int i = 0; i < 500 && !is_sending; ++i) is_sending = pending_is_sending().value_or(false);
  EXPECT_TRUE(is_sending);
  worker.on("list-published", there("21"));
  EXPECT_EQ(pending_is_sending(), false);
  const auto latest = await(context, watches->find("run7")->latest());
  EXPECT_EQ(get_int((**latest).at("pending").as_object(), "others_progress"), 7);
  std::ofstream(worker.folder() / "go") << "now";
}

TEST_F(WatchedOutputTest, LatestNamesAPendingCheckpointWhateverTheClocksOfOtherHosts) {
  settings.outputs["run7"].nodes = 2;
  worker.on("scan-output", kTwoThere);
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 45}]}}')");
  watches->apply(settings);
  const auto latest = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(latest && *latest);
  EXPECT_EQ((**latest).at("name"), "step-2");
  ASSERT_TRUE((**latest).contains("pending"));
  EXPECT_EQ((**latest).at("pending").as_object().at("name"), "step-3");
}

TEST_F(WatchedOutputTest, AShardIsRecheckedUntilTheWholeCheckpointIsPublished) {
  settings.outputs["run7"].nodes = 2;
  worker.on("stage-out",
            note_request("stage-outs.log") +
                R"(echo '{"result": {"state": "waiting", "served_from": "copied", "hosts": ["spark1"]}}')");
  watches->apply(settings);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") >= 2; }));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("nodes":2)"));
  EXPECT_EQ(watches->find("run7")->facts().failures, 0u);
  const auto pending = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(*pending) << (*pending).error().message();
  EXPECT_EQ(get_string((**pending).at("pending").as_object(), "name"), "step-2");
  EXPECT_FALSE((**pending).contains("dataset"));
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-2", "mtime_ns": 25}]}}')");
  ASSERT_TRUE(run_until(context, [&] { return watches->find("run7")->facts().unsent.empty(); }));
  const auto latest = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(*latest) << (*latest).error().message();
  EXPECT_EQ(json::serialize(**latest), R"({"name":"step-2","dataset":"checkpoints:run7/step-2"})");
}

TEST_F(WatchedOutputTest, AFolderWithANameForAnotherRuleIsTold) {
  settings.outputs["run7"].complete = config::Complete::HuggingFace;
  worker.on("scan-output", R"(echo '{"result": {"uid": 1000, "checkpoints": [], "other": "step_500"}}')");
  watches->apply(settings);
  EXPECT_TRUE(run_until(context, [&] {
    return watches->find("run7")->facts().unsent ==
           "step_500 is not sent, as its name is none that `complete: hf` takes";
  }));
}

}  // namespace
}  // namespace spark::outputs
