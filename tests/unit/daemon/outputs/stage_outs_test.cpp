#include "daemon/log.hpp"
#include "tests/unit/daemon/outputs/stage_outs_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

TEST_F(StageOutsTest, ARequestIsRecordedBeforeItsAnswerAndForgottenAtItsEnd) {
  const auto job = send();
  EXPECT_EQ(worker.calls("record"), 1);
  EXPECT_THAT(text_of("records.log"), HasSubstr(R"("source":"/out/step-1")"));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("forget"), 1);
  EXPECT_EQ(outs->totals().sent, 1U);
  EXPECT_EQ(outs->totals().sent_bytes, 5U);
  EXPECT_TRUE(outs->list().empty());
}

TEST_F(StageOutsTest, TheWorkerReceivesTheRequestingUser) {
  ASSERT_TRUE(ends(send()));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("uid":1000)"));
}

// After a power cut the file system may have the names and sizes of files without their content.
// A limit counts these: one user's must not use up those of another.
TEST_F(StageOutsTest, TransfersAreCountedForTheirUser) {
  const auto job = send();
  EXPECT_EQ(outs->transfers_of(1000), 1U);
  EXPECT_EQ(outs->transfers_of(1001), 0U);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(outs->transfers_of(1000), 0U);
}

TEST_F(StageOutsTest, TheSourceIsFlushedAsTheRequestingUserBeforeTheRequestIsRecorded) {
  worker.on("record", "cp flushes.log flushed-before.log; " + std::string(R"(echo '{"result": {}}')"));
  ASSERT_TRUE(ends(send()));
  EXPECT_THAT(text_of("flushed-before.log"), HasSubstr(R"({"source":"/out/step-1","uid":1000})"));
}

TEST_F(StageOutsTest, ARequestIsRecordedWithTheStateOfItsSourceAndSendsNoOther) {
  ASSERT_TRUE(ends(send()));
  EXPECT_THAT(text_of("records.log"), HasSubstr(R"("written":7)"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":7)"));
}

TEST_F(StageOutsTest, AFlushThatTellsNoStateIsNoAcceptance) {
  worker.on("flush-source", R"(echo '{"result": {}}')");
  const auto job = await(context, outs->send(request()));
  EXPECT_TRUE(job && !*job);
  EXPECT_EQ(worker.calls("record"), 0);
}

TEST_F(StageOutsTest, TheRequestOfAnEarlierVersionGetsTheStateOfNowWithAWarning) {
  StageOutRequest earlier = request();
  earlier.id = "one";
  json::object content = to_json(earlier);
  content["written"] = 0;
  content.erase("attempt");
  const json::object row{{"file", "/state/stage-outs/one.json"}, {"content", content}};
  const json::object answer{{"result", json::object{{"records", json::array{row}}}}};
  worker.on("recorded", "echo '" + json::serialize(answer) + "'");
  std::string log;
  log::redirect([&](std::string_view sentence) { log.append(sentence).append("\n"); });
  asio::co_spawn(context, outs->start(), asio::detached);
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent == 1; }));
  log::redirect({});
  EXPECT_THAT(log, HasSubstr("recorded no state of the source"));
  EXPECT_THAT(text_of("records.log"), HasSubstr(R"("written":7)"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":7)"));
}

TEST_F(StageOutsTest, ASourceThatCannotBeFlushedIsNotAccepted) {
  worker.on(
      "flush-source",
      R"(echo '{"error": {"kind": "failed", "what": "flushing /out/step-1: Input/output error", "hint": ""}}')");
  const auto job = await(context, outs->send(request()));
  ASSERT_TRUE(job && !*job);
  EXPECT_THAT(job->error().message(), HasSubstr("flushing /out/step-1: Input/output error"));
  EXPECT_EQ(worker.calls("record"), 0);
  EXPECT_TRUE(run_until(context, [&] { return outs->transfers().empty(); }));
}

TEST_F(StageOutsTest, ASourceThatIsKnownToBeOnItsDriveIsNotFlushedAgain) {
  StageOutRequest checked = request();
  checked.is_flushed = true;
  checked.written = 21;
  ASSERT_TRUE(ends(send(checked)));
  EXPECT_EQ(worker.calls("flush-source"), 0);
}

TEST_F(StageOutsTest, ARequestThatCannotBeRecordedIsRefused) {
  worker.on("record", kFull);
  const auto job = await(context, outs->send(request()));
  ASSERT_TRUE(job && !*job);
  EXPECT_EQ(job->error().kind, Errc::NoSpace);
  EXPECT_TRUE(run_until(context, [&] { return outs->transfers().empty(); }));
}

TEST_F(StageOutsTest, ARecordedRequestIsResumedAtTheStart) {
  StageOutRequest earlier = request();
  earlier.id = "one";
  const json::object row{{"file", "/state/stage-outs/one.json"}, {"content", to_json(earlier)}};
  const json::object answer{{"result", json::object{{"records", json::array{row}}}}};
  worker.on("recorded", "echo '" + json::serialize(answer) + "'");
  asio::co_spawn(context, outs->start(), asio::detached);
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent == 1; }));
}

TEST_F(StageOutsTest, ARecordWithoutAUserIsNotSent) {
  json::object content = to_json(request());
  content["id"] = "one";
  content.erase("uid");
  const json::object row{{"file", "/state/stage-outs/one.json"}, {"content", content}};
  const json::object answer{{"result", json::object{{"records", json::array{row}}}}};
  worker.on("recorded", "echo '" + json::serialize(answer) + "'");
  const auto started = [this]() -> asio::awaitable<bool> {
    co_await outs->start();
    co_return true;
  };
  ASSERT_TRUE(await(context, started()));
  EXPECT_TRUE(outs->transfers().empty());
}

TEST_F(StageOutsTest, ACopyThatIsInUseWhenTheTransferEndsIsSparedByTheDeletionOfOlderOnes) {
  worker.on("stage-out", note_request("stage-outs.log") + "until [ -e go ]; do sleep 0.02; done; " + kSent);
  StageOutRequest limited = request();
  limited.keep = 2;
  const auto job = send(limited);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
  used = std::vector<std::string>{"step-7"};  // a lease that begins during the transfer
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(ends(job));
  for (const char* part : {R"("path":"run/step-1","uid":1000,"keep":2,"keep_every":0,"rule":"")",
                           R"("spared":["step-7"])", R"("root":"/v","mount":"/v")"})
    EXPECT_THAT(text_of("prunes.log"), HasSubstr(part));
  EXPECT_THAT(json::serialize(job->final_event()), HasSubstr(R"("removed":["step-0"])"));
}

TEST_F(StageOutsTest, TheConfigurationAtTheEndOfATransferSaysWhatAnOutputKeeps) {
  worker.on("stage-out", note_request("stage-outs.log") + "until [ -e go ]; do sleep 0.02; done; " + kSent);
  const StageOutRequest of_output = request_of_output("marker");
  const auto job = send(of_output);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("stage-outs.log").empty(); }));
  settings.outputs["run7"].keep = 5;  // a reload during the transfer
  settings.outputs["run7"].keep_every = 300;
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(ends(job));
  EXPECT_THAT(text_of("prunes.log"), HasSubstr(R"("keep":5,"keep_every":300,"rule":"marker")"));
  settings.outputs.clear();
  ASSERT_TRUE(ends(send(of_output)));
  EXPECT_EQ(worker.calls("prune-output"), 1) << "no longer an output: all of its copies stay";
}

TEST_F(StageOutsTest, AReloadTakesBackADeletionInProgress) {
  worker.on("prune-output", note_request("prunes.log") +
                                R"(case $request in *'"keep":1'*) sleep 60 ;; esac; echo '{"result": {}}')");
  const StageOutRequest of_output = request_of_output("rename");
  const auto job = send(of_output);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("prunes.log").empty(); }));
  settings.outputs["run7"].keep = 5;
  for (const TransferPtr& one : outs->transfers()) one->config_changed();
  ASSERT_TRUE(ends(job));
  EXPECT_THAT(text_of("prunes.log"), HasSubstr(R"("keep":5)"));
  EXPECT_THAT(json::serialize(job->final_event()), HasSubstr(R"("warnings":[])"));
}

// By a deadline or a reload: its answer never comes.
TEST_F(StageOutsTest, ADeletionIsLoggedAlsoIfItsWorkerIsKilled) {
  worker.on("prune-output",
            R"(echo '{"progress": {"deletes": "step-0", "because": "keep is 1"}}'; kill -KILL $$)");
  std::string log;
  log::redirect([&](std::string_view sentence) { log.append(sentence).append("\n"); });
  StageOutRequest limited = request();
  limited.keep = 1;
  EXPECT_TRUE(ends(send(limited)));
  log::redirect({});
  EXPECT_THAT(log, HasSubstr("deleting step-0 for checkpoints:run/step-1: keep is 1"));
}

TEST_F(StageOutsTest, WithoutALimitNoOlderCopyIsDeleted) {
  ASSERT_TRUE(ends(send()));
  EXPECT_EQ(worker.calls("prune-output"), 0);
}

TEST_F(StageOutsTest, NoOlderCopyIsDeletedWhileTheLeasesAreUnknown) {
  used.reset();
  StageOutRequest limited = request();
  limited.keep = 1;
  const auto job = send(limited);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("prune-output"), 0);
  EXPECT_EQ(outs->totals().sent, 1u);
  EXPECT_THAT(json::serialize(job->final_event()),
              HasSubstr("older copies were not all deleted: the leases of this host are not known yet"));
}

TEST_F(StageOutsTest, AFailedDeletionOfOlderCopiesIsAWarningOfACompleteTransfer) {
  worker.on("prune-output", kTrouble);
  StageOutRequest limited = request();
  limited.keep = 1;
  const auto job = send(limited);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(outs->totals().sent, 1u);
  EXPECT_THAT(json::serialize(job->final_event()),
              HasSubstr("older copies were not all deleted: writing /v/x"));
}

TEST_F(StageOutsTest, ACopyThatDoesNotCountForKeepAndARestWithoutProofAreNamed) {
  worker.on("prune-output",
            R"(echo '{"result": {"removed": [], "not_whole": ["step-3"], "warnings": ["a rest stays"]}}')");
  StageOutRequest limited = request();
  limited.keep = 1;
  const auto job = send(limited);
  ASSERT_TRUE(ends(job));
  const std::string result = json::serialize(job->final_event());
  EXPECT_THAT(result, HasSubstr("step-3 in checkpoints:run lacks files, so an older copy stays for it"));
  EXPECT_THAT(result, HasSubstr("a rest stays"));
}

TEST_F(StageOutsTest, ATransferWithARateOfItsOwnHoldsUpNoOther) {
  worker.on("stage-out", kHangs);
  StageOutRequest slow = request();
  slow.max_rate = 100'000;
  const auto first = send(slow);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  worker.on("stage-out", kSent);
  EXPECT_TRUE(ends(send(request("run/step-2"))));
  EXPECT_TRUE(first->is_running());
  // Longer than "stalled": at this rate, the next piece is due later.
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  run_until(context, [&] { return std::chrono::steady_clock::now() > later; });
  const auto& progress = first->progress();
  EXPECT_NE(progress ? get_string(*progress, "phase").value_or("") : "", "stalled");
  ASSERT_TRUE(first->cancel());
  EXPECT_TRUE(ends(first));
}

// The worker has the user's rights, so that the user may stop it.
TEST_F(StageOutsTest, AStoppedWorkerKeepsTheVolumeFromNoOtherCopy) {
  worker.on("stage-out", "if [ $n = 1 ]; then kill -STOP $$; fi; " + std::string(kSent));
  const auto stopped = send();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  StageOutRequest of_another = request("run/step-2");
  of_another.asker.uid = 1001;
  EXPECT_TRUE(ends(send(of_another)));
  EXPECT_TRUE(ends(stopped));
  EXPECT_EQ(worker.calls("stage-out"), 3);
  EXPECT_EQ(outs->totals().sent, 2U);
}

TEST_F(StageOutsTest, AStoppedDeletionKeepsTheVolumeFromNoOtherCopy) {
  worker.on("prune-output", note_request("prunes.log") + "kill -STOP $$");
  StageOutRequest limited = request();
  limited.keep = 1;
  const auto stopped = send(limited);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("prune-output") == 1; }));
  StageOutRequest of_another = request("run/step-2");
  of_another.asker.uid = 1001;
  EXPECT_TRUE(ends(send(of_another)));
  EXPECT_TRUE(stopped->is_running());
  ASSERT_TRUE(stopped->cancel());
  EXPECT_TRUE(ends(stopped));
}

TEST_F(StageOutsTest, AStageOutWaitsUntilItsVolumeIsAvailable) {
  away = Error{Errc::Unavailable, "volume checkpoints is lost", ""};
  const auto job = send();
  ASSERT_TRUE(run_until(
      context, [&] { return job->progress() && get_string(*job->progress(), "phase") == "stalled"; }));
  EXPECT_EQ(worker.calls("stage-out"), 0);
  away.reset();
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(outs->totals().sent, 1U);
}

TEST_F(StageOutsTest, AStageOutToAReadOnlyVolumeIsRefusedAtOnce) {
  away = Error{Errc::Refused, "volume checkpoints is read-only on this host", "send it elsewhere"};
  const auto job = await(context, outs->send(request()));
  ASSERT_TRUE(job && !*job);
  EXPECT_EQ(job->error().kind, Errc::Refused);
  EXPECT_EQ(worker.calls("record"), 0);
}

TEST_F(StageOutsTest, ATakeoverOfTheVolumeEndsTheStageOut) {
  worker.on("stage-out", kHangs);
  const auto job = send();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  away = Error{Errc::Refused, "host2 holds it", "send it from there"};
  ASSERT_TRUE(ends(job));
  EXPECT_THAT(error_of(job), HasSubstr("host2 holds it; nothing incomplete is visible there"));
}

TEST_F(StageOutsTest, AFailingTransferToAHealthyVolumeIsTriedThreeTimes) {
  worker.on("stage-out", kTrouble);
  const auto job = send();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage-out"), 3);
  EXPECT_THAT(error_of(job), HasSubstr("the local copy is as it was"));
  EXPECT_EQ(outs->totals().failed, 1U);
}

TEST_F(StageOutsTest, AFullVolumeIsReportedWithoutARetry) {
  worker.on("stage-out", kFull);
  const auto job = send();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage-out"), 1);
  EXPECT_THAT(error_of(job), HasSubstr("nothing incomplete is visible there"));
}

// For example, its folder on the volume was taken over by another host.
TEST_F(StageOutsTest, AnErrorThatTheWorkerCallsFinalIsNotRetried) {
  worker.on("stage-out", R"(echo '{"result": {"state": "failed", "error": {"kind": "unavailable",)"
                         R"( "what": "folder /v/x was taken over by host spark2", "hint": ""}}}')");
  const auto job = send();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage-out"), 1);
  EXPECT_THAT(error_of(job), HasSubstr(R"("kind":"unavailable")"));
  EXPECT_THAT(error_of(job), HasSubstr("taken over by host spark2; nothing incomplete is visible there"));
  EXPECT_EQ(outs->totals().failed, 1U);
}

TEST_F(StageOutsTest, AHangingTransferIsReplacedWhenItsVolumeIsBack) {
  worker.on("stage-out", "if [ $n = 1 ]; then " + std::string(kHangs) + "; else " + kSent + "; fi");
  const auto job = send();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  ASSERT_TRUE(run_until(
      context, [&] { return job->progress() && get_string(*job->progress(), "phase") == "stalled"; }));
  away.reset();
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage-out"), 2);
  EXPECT_EQ(outs->totals().sent, 1U);
}

TEST_F(StageOutsTest, ASlowTransferIsNotTakenForAHangingOneAfterAnOutage) {
  worker.on("stage-out", "if [ $n = 1 ]; then sleep 1; fi; " + std::string(kSent));
  StageOutRequest slow = request();
  slow.max_rate = 32 << 20;  // the next bytes are due within 2 s
  const auto job = send(slow);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  ASSERT_TRUE(run_until(
      context, [&] { return job->progress() && get_string(*job->progress(), "phase") == "stalled"; }));
  away.reset();
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage-out"), 1);
}

TEST_F(StageOutsTest, AShardWaitsForTheOtherHostsWithoutBlockingTheVolume) {
  worker.on(
      "stage-out",
      note_request("stage-outs.log") +
          R"(case "$request" in *'"nodes":2'*) [ -e joined ] || { echo '{"result": {"state": "waiting",)"
          R"( "shard_sent_ns": 7, "served_from": "copied", "hosts": ["spark1"]}}'; exit; };; esac; )" +
          kSent);
  StageOutRequest sharded = request();
  sharded.nodes = 2;
  const auto job = send(sharded);
  ASSERT_TRUE(run_until(context, [&] {
    return std::string(get_string(outs->list().at(0).as_object(), "reason").value_or("")).find("spark1") !=
           std::string::npos;
  }));
  EXPECT_EQ(outs->list().at(0).as_object().at("reason"),
            "it is published when the shards of 2 hosts are there; so far they are of spark1");
  const auto other = send(request("run/step-2", "/out/step-2"));
  ASSERT_TRUE(run_until(context, [&] { return !other->is_running(); }));
  EXPECT_TRUE(job->is_running());
  EXPECT_EQ(outs->totals().sent, 1u);
  std::ofstream(worker.folder() / "joined") << "now";
  ASSERT_TRUE(run_until(context, [&] { return !job->is_running(); }));
  EXPECT_EQ(outs->totals().sent, 2u);
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("shard_sent_ns":7)")) << "a newer one may replace it";
}

TEST_F(StageOutsTest, AWatchedOutputsShardDoesNotWaitForTheOtherHosts) {
  worker.on("stage-out", R"(echo '{"result": {"state": "waiting", "served_from": "copied", "hosts": []}}')");
  StageOutRequest sharded = request();
  sharded.nodes = 2;
  sharded.waits = false;
  const auto job = send(sharded);
  ASSERT_TRUE(run_until(context, [&] { return !job->is_running(); }));
  EXPECT_EQ(outs->totals().sent, 0u);
  EXPECT_EQ(worker.calls("stage-out"), 1);
}

}  // namespace
}  // namespace spark::outputs
