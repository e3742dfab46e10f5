// Requests whose source is away: how long each of them waits.
#include <set>

#include "tests/unit/daemon/datasets/patience_fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

TEST_F(PatienceTest, ARequestThatWaitsIsStalledWithTheCurrentReasonAndBeginsWhenTheSourceIsBack) {
  start();
  source_error = gone;
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(is_stalled());
  ASSERT_TRUE(run_until(context, [&] { return job->progress().has_value(); }));
  EXPECT_EQ(get_string(*job->progress(), "phase"), "stalled");
  EXPECT_THAT(*get_string(*job->progress(), "reason"), HasSubstr("its device is gone"));
  source_error->what = "volume datasets is connecting";
  ASSERT_TRUE(run_until(context, [&] {
    return get_string(*job->progress(), "reason").value_or("").find("is connecting") != std::string::npos;
  }));
  EXPECT_EQ(worker.calls("stage"), 0);
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

TEST_F(PatienceTest, EachRequestDecidesOnlyForItself) {
  start();
  source_error = gone;
  const auto patient = ask(std::nullopt), limited = ask(Duration(150));
  ASSERT_TRUE(is_stalled());
  const auto hasty = ask(Duration(0));
  ASSERT_TRUE(run_until(
      context, [&] { return !hasty->is_running(); }, std::chrono::seconds(5)));
  EXPECT_EQ(kind_of(hasty), "unavailable");
  EXPECT_THAT(what_of(hasty), HasSubstr("staging imagenet: volume datasets is lost: its device is gone"));
  EXPECT_TRUE(limited->is_running());
  ASSERT_TRUE(run_until(
      context, [&] { return !limited->is_running(); }, std::chrono::seconds(5)));
  EXPECT_EQ(kind_of(limited), "unavailable");
  EXPECT_TRUE(patient->is_running());
  EXPECT_TRUE(is_stalled());
  source_error.reset();
  ASSERT_TRUE(ends(patient));
  EXPECT_EQ(kind_of(patient), "done");
}

TEST_F(PatienceTest, TheLastRequestThatGivesUpLeavesTheReason) {
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  start();
  source_error = gone;
  ASSERT_TRUE(ends(ask(Duration(0))));
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  EXPECT_EQ(state_of("imagenet"), "failed");
  EXPECT_THAT(get_string(row_of("imagenet"), "reason").value_or(""), HasSubstr("its device is gone"));
}

TEST_F(PatienceTest, ARequestReportsAMissingSourceWhileAnotherOfItsDatasetsIsCopied) {
  worker.on("stage", lines({kBegun, "exec sleep 600"}));
  start();
  source_error = gone;
  const auto job = stage_all({"models", "imagenet"});
  ASSERT_TRUE(run_until(
      context, [&] { return !job->is_running(); }, std::chrono::seconds(5)));
  EXPECT_THAT(what_of(job), HasSubstr("its device is gone"));
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(PatienceTest, AWaitingStagingCanBeCancelled) {
  start();
  source_error = gone;
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(is_stalled());
  EXPECT_TRUE(job->cancel());
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(PatienceTest, APrefetchWaitsForItsSource) {
  start();
  source_error = gone;
  StageRequest request;
  request.datasets = {"imagenet"};
  request.demand.is_prefetch = true;
  request.wait.reset();
  const auto job = *datasets->requests().stage(std::move(request));
  ASSERT_TRUE(is_stalled());
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

TEST_F(PatienceTest, AStagingWhoseSourceIsLostAgainBetweenTwoAttemptsGoesOnWaiting) {
  worker.on("stage", "if [ $n = 1 ]; then " + lines({kBegun, kTrouble}) + "; else " + staged() + "; fi");
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  timings.retry = Duration(100);
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(is_stalled());
  source_error = gone;  // only seen by the next attempt
  context.run_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(job->is_running()) << "it had begun";
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

TEST_F(PatienceTest, TheTasksOfAJobAndRepeatedRequestsShareOneJob) {
  start();
  source_error = gone;
  const auto first = ask_for_job();
  ASSERT_TRUE(is_stalled());
  EXPECT_EQ(ask_for_job()->id(), first->id());
  EXPECT_NE(ask_for_job(Duration(60'000))->id(), first->id()) << "it has a limit of its own";
  EXPECT_NE(ask(std::nullopt)->id(), first->id()) << "it is of no job";
  source_error.reset();
  ASSERT_TRUE(ends(first));
  EXPECT_EQ(kind_of(first), "done");
  EXPECT_NE(ask_for_job()->id(), first->id());
}

TEST_F(PatienceTest, ARequestThatJoinsAStalledStagingHasItsOwnLimit) {
  worker.on("stage",
            "if [ $n = 1 ]; then " + lines({kBegun, "sleep 0.2", kTrouble}) + "; else " + staged() + "; fi");
  start();
  const auto first = ask(Duration(0));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") == 1; }));
  source_error = gone;
  ASSERT_TRUE(is_stalled());
  const auto hasty = ask(Duration(0));
  ASSERT_TRUE(ends(hasty));
  EXPECT_EQ(kind_of(hasty), "unavailable");
  EXPECT_TRUE(first->is_running()) << "its copy had begun, and goes on";
  source_error.reset();
  ASSERT_TRUE(ends(first));
  EXPECT_EQ(kind_of(first), "done");
}

TEST_F(PatienceTest, PrefetchesOfHooksForTheSameDataAreOneJob) {
  start();
  source_error = gone;
  const auto prefetch = [&](uid_t uid) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.demand.is_prefetch = true;
    request.wait.reset();
    request.asker.uid = uid;
    return *datasets->requests().stage(std::move(request));
  };
  const auto first = prefetch(0);
  EXPECT_EQ(prefetch(0)->id(), first->id());
  EXPECT_NE(prefetch(1000)->id(), first->id()) << "a user's own";
}

TEST_F(PatienceTest, ACacheThatIsAwayIsShownAsOneStall) {
  worker.on("stage", kTrouble);
  timings.retry = Duration(20);
  start();
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(is_stalled());
  ASSERT_TRUE(run_until(context, [&] { return job->progress().has_value(); }));
  std::set<std::string> phases;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) {
    context.restart();
    context.run_one_for(std::chrono::milliseconds(10));
    phases.insert(get_string(*job->progress(), "phase").value_or(""));
  }
  EXPECT_THAT(phases, testing::ElementsAre("stalled"));
  EXPECT_GT(worker.calls("stage"), 1);
  EXPECT_LT(worker.calls("stage"), 8) << "ever less often";
  EXPECT_TRUE(job->cancel());
}

TEST_F(PatienceTest, AStagingOfADatasetThatWasRemovedFromTheConfigurationEnds) {
  start();
  source_error = gone;
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(is_stalled());
  settings.datasets.erase("imagenet");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "not_found");
}

TEST_F(PatienceTest, ACancelledStagingIsNotRecordedAsFailed) {
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  start();
  source_error = gone;
  const auto patient = ask(std::nullopt);
  ASSERT_TRUE(ends(ask(Duration(0))));
  EXPECT_TRUE(patient->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  EXPECT_EQ(state_of("imagenet"), "absent");
}

}  // namespace
}  // namespace spark::datasets
