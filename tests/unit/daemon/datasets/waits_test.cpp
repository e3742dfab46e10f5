// Failing sources, unavailable volumes, hanging workers.
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

class SourceFailureTest : public DatasetsTest {
 protected:
  const Error gone{Errc::Unavailable, "volume datasets is lost: its device is gone", ""};

  SourceFailureTest() {
    // The catalog is empty, so that the state shown is that of the staging.
    worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  }
  bool is_stalled() {
    return run_until(context, [&] { return state_of("imagenet") == "stalled"; });
  }
};

TEST_F(SourceFailureTest, AStagingResumesAutomaticallyWhenItsVolumeIsBack) {
  // The volume is gone when the first attempt ends.
  worker.on("stage",
            "if [ $n = 1 ]; then " + lines({kBegun, "sleep 0.2", kTrouble}) + "; else " + staged() + "; fi");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  source_error = gone;
  ASSERT_TRUE(is_stalled());
  ASSERT_TRUE(run_until(context, [&] {
    return get_string(row_of("imagenet"), "reason").value_or("").find("its device is gone") !=
           std::string::npos;
  }));
  context.run_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(job->is_running()) << "its client keeps waiting";
  EXPECT_EQ(get_string(*job->progress(), "phase"), "stalled");
  EXPECT_EQ(worker.calls("stage"), 1);
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 2);
}

TEST_F(SourceFailureTest, WhileItsVolumeIsUnavailablePeersAreAskedUntilOneHasTheDataset) {
  worker.on("stage",
            std::string("read -r request; case $request in *'\"away\":true'*) if [ $n = 4 ]; then ") +
                staged() + "; else " + kTrouble + "; fi;; *) " + lines({kBegun, "sleep 0.2", kTrouble}) +
                ";; esac");
  device = "/dev/nvme0n1";
  settings.fleet.listen = {nvmetcp::Portal{"10.0.0.1", 7789}};
  timings.peers = Duration(20);
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  source_error = gone;
  ASSERT_TRUE(is_stalled());
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 4);
}

TEST_F(SourceFailureTest, StagingFromAVolumeBeingWrittenIsRefusedUnlessAllowed) {
  worker.on("stage",
            R"(cat >> stages.log; echo '{"error": {"kind": "not_found", "what": "no", "hint": ""}}')");
  doubt = "being written by another host";
  start();
  const auto refused = stage();
  ASSERT_TRUE(ends(refused));
  EXPECT_EQ(kind_of(refused), "refused");
  EXPECT_NE(text_of("stages.log").find("\"only_cached\":true"), std::string::npos);
  worker.on("stage", staged());
  StageRequest request;
  request.datasets = {"imagenet"};
  request.allow_dirty = true;
  const auto allowed = *datasets->requests().stage(std::move(request));
  ASSERT_TRUE(ends(allowed));
  EXPECT_EQ(kind_of(allowed), "done");
}

TEST_F(SourceFailureTest, ARequestWithoutAllowDirtyAsksTheCacheOnlyForACleanCopy) {
  doubt = "being written by another host";
  start();
  EXPECT_TRUE(ends(stage()));
  EXPECT_THAT(text_of("stages.log"), testing::HasSubstr(R"("doubtful":false)"));
}

TEST_F(SourceFailureTest, ADirtyCopyIsRefusedOnceARequestWithoutAllowDirtyJoinsIt) {
  worker.on("stage", lines({kBegun, "sleep 0.3", kMoved, "sleep 30", staged()}));
  doubt = "being written by another host";
  start();
  StageRequest request;
  request.datasets = {"imagenet"};
  request.allow_dirty = true;
  const auto allowed = *datasets->requests().stage(std::move(request));
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  const auto strict = stage();
  ASSERT_TRUE(ends(strict));
  EXPECT_EQ(kind_of(strict), "refused");
  ASSERT_TRUE(ends(allowed));
  EXPECT_EQ(kind_of(allowed), "refused");
}

TEST_F(SourceFailureTest, AWriterThatAppearsDuringTheCopyEndsTheStaging) {
  worker.on("stage", lines({kBegun, "sleep 0.3", kMoved, "sleep 30", staged()}));
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  doubt = "being written by another host";
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "refused");
}

TEST_F(SourceFailureTest, AVolumeRewrittenDuringTheCopyIsCopiedAgainOnceItIsRemounted) {
  worker.on("stage", "if [ $n = 1 ]; then " + lines({kBegun, "sleep 0.3", kMoved, "sleep 30"}) + "; else " +
                         staged() + "; fi");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  doubt = "written by another host since it was mounted here";
  doubt_passes = true;
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "stalled"; }));
  doubt.clear();
  doubt_passes = false;
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 2);
}

TEST_F(SourceFailureTest, StagingFromAnOutdatedMountThatStaysInUseIsFinallyRefused) {
  worker.on("stage", R"(echo '{"error": {"kind": "not_found", "what": "no", "hint": ""}}')");
  timings.doubt = Duration(100);
  doubt = "written by another host since it was mounted here (in use by bash (pid 7))";
  doubt_passes = true;
  start();
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "refused");
}

TEST_F(SourceFailureTest, AFailingSourceOnAHealthyVolumeIsTriedThreeTimes) {
  worker.on("stage", lines({kBegun, kTrouble}));
  start();
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 3);
  EXPECT_EQ(kind_of(job), "failed");
  EXPECT_EQ(state_of("imagenet"), "failed");
  const std::string reason = get_string(row_of("imagenet"), "reason").value_or("");
  EXPECT_THAT(reason, HasSubstr("reading /mnt/a: Input/output error; tried 3 times"));
}

TEST_F(SourceFailureTest, AnAttemptThatMadeProgressResetsTheRetryCount) {
  worker.on("stage", "if [ $n -le 3 ]; then " + lines({kBegun, kMoved, kTrouble}) + "; else " +
                         lines({kBegun, kTrouble}) + "; fi");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(worker.calls("stage"), 5) << "the third copied something, and counts as the first again";
}

TEST_F(SourceFailureTest, ACacheThatIsAwayAfterACopyHadBegunIsNoTroubleOfItsSource) {
  worker.on("stage", "if [ $n = 1 ]; then " + lines({kBegun, kTrouble}) + "; elif [ $n -le 5 ]; then " +
                         kTrouble + "; else " + staged() + "; fi");
  start();
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 6);
}

TEST_F(SourceFailureTest, AnErrorOutsideTheSourceIsNotRetried) {
  worker.on("stage",
            lines({kBegun, R"(echo '{"error": {"kind": "failed", "what": "writing /c", "hint": ""}}')"}));
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(worker.calls("stage"), 1);
  // The cache's drive is missing, so the source was never read.
  worker.on("stage", kTrouble);
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "unavailable");
  EXPECT_EQ(worker.calls("stage"), 2);
}

TEST_F(SourceFailureTest, OtherDatasetsAreStagedWhileAVolumeIsUnavailable) {
  worker.on("stage", "if grep -q models; then " + staged() + "; else while :; do " + kBegun +
                         "; sleep 0.05; done; fi");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  const auto other = stage_all({"models"});
  context.run_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(other->is_running()) << "one at a time";
  source_error = gone;
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(kind_of(other), "done");
  EXPECT_TRUE(job->is_running());
  EXPECT_TRUE(job->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(SourceFailureTest, AHangingStagingWorkerIsReplacedWhenItsVolumeIsBack) {
  worker.on("stage", "if [ $n = 1 ]; then while :; do " + std::string(kBegun) + "; sleep 0.05; done; else " +
                         staged() + "; fi");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  source_error = gone;
  ASSERT_TRUE(is_stalled());
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 2);
}

TEST_F(SourceFailureTest, ACopyWithoutProgressIsShownAsStalledWithItsDuration) {
  worker.on("stage", "while :; do " + std::string(kBegun) + "; sleep 0.05; done");
  start();
  const auto job = stage();
  ASSERT_TRUE(is_stalled());
  EXPECT_THAT(get_string(row_of("imagenet"), "reason").value_or(""), HasSubstr("no byte moved for"));
  EXPECT_TRUE(job->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(SourceFailureTest, AStagingThatWaitsForItsVolumeCanBeCancelled) {
  worker.on("stage", lines({kBegun, "sleep 0.2", kTrouble}));
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  source_error = gone;
  ASSERT_TRUE(is_stalled());
  context.run_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(job->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  EXPECT_EQ(state_of("imagenet"), "absent") << "cancelled is not failed";
}

TEST_F(SourceFailureTest, ANewRequestDoesNotJoinACancelledStagingThatIsStillEnding) {
  worker.on("stage", "if [ $n = 1 ]; then " + lines({kBegun, "sleep 600"}) + "; else " + staged() + "; fi");
  start();
  const auto first = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  EXPECT_TRUE(first->cancel());
  context.restart();
  context.poll();  // its job drops the task while the worker is being killed
  const auto second = stage();
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(kind_of(second), "done");
}

TEST_F(SourceFailureTest, AFinishedTaskIsNotReportedToTheCatalogAsInProgress) {
  worker.on("catalog", note_request("catalog.log") + R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_THAT(text_of("catalog.log"), testing::Not(HasSubstr(R"("in_progress":[1])")));
  EXPECT_THAT(text_of("catalog.log"), HasSubstr(R"("in_progress":[])"));
}

}  // namespace
}  // namespace spark::datasets
