// Requests whose source is away before anything was read: how long each of them waits, and what is served.
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

class PatienceTest : public DatasetsTest {
 protected:
  static constexpr char kHere[] =
      R"({"result": {"datasets": [{"name": "imagenet", "state": "ready", "path": "/c/2", "bytes": 7, "files": 2,
          "generation": 2, "hash": "h2", "staged_at": "2026-01-02T00:00:00Z", "older":
          [{"name": "imagenet", "state": "ready", "path": "/c/1", "bytes": 5, "files": 1, "generation": 1, "hash": "h1"}]}],
          "usage": {}}})";

  PatienceTest() { worker.on("catalog", "printf '%s\\n' '" + one_line(kHere) + "'"); }

  std::shared_ptr<Job> ask(std::optional<Duration> wait, bool offline = false) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.wait = wait;
    request.offline = offline;
    return *datasets->requests().stage(std::move(request));
  }
  std::shared_ptr<Job> ask_for_job(std::optional<Duration> wait = {}) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.job.system = staging::kSlurm;
    request.job.id = "7";
    request.wait = wait;
    return *datasets->requests().stage(std::move(request));
  }
  // A lease of Slurm's job 7, as an earlier daemon left it.
  void lease_of_job(int generation) {
    worker.on("lease",
              note_request("leases.log") +
                  R"(echo '{"result": {"leases": [{"id": "job:slurm:7:imagenet", "dataset": "imagenet",)"
                  R"( "generation": )" +
                  std::to_string(generation) +
                  R"(, "holder": "slurm job 7", "job": {"system": "slurm", "id": "7", "boot": ")" +
                  staging::boot_id(SystemRoot{}) + R"("}}]}}')");
  }
  bool is_stalled() {
    return run_until(context, [&] {
      return !datasets->stages().empty() &&
             get_string(datasets->stages()[0].as_object(), "phase") == "stalled";
    });
  }
  static std::string what_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* error = get_object(event, "error");
    return error == nullptr ? "" : get_string(*error, "what").value_or("");
  }
  static json::object result_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object{} : get_array(*result, "datasets")->at(0).as_object();
  }
  const Error gone{Errc::Unavailable, "volume datasets is lost: its device is gone", ""};
};

TEST_F(PatienceTest, ARequestThatWaitsIsStalledWithTheCurrentReasonAndBeginsWhenTheSourceIsBack) {
  start();
  source_error = gone;
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(is_stalled());
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

TEST_F(PatienceTest, TheHolderOfALeaseIsServedItsOwnGenerationWithoutALookAtTheSource) {
  lease_of_job(1);
  start();
  const auto job = ask_for_job();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 0);
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/1");
  EXPECT_EQ(get_string(result_of(job), "served_from"), "cache");
  EXPECT_EQ(get_string(result_of(job), "lease"), "job:slurm:7:imagenet");
  EXPECT_FALSE(result_of(job).contains("unchecked"));
  source_error = gone;
  const auto away = ask_for_job(Duration(0));
  ASSERT_TRUE(ends(away));
  EXPECT_EQ(get_string(result_of(away), "path"), "/c/1");
  EXPECT_THAT(get_string(result_of(away), "unchecked").value_or(""), HasSubstr("is lost"));
  EXPECT_EQ(worker.calls("stage"), 0);
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

TEST_F(PatienceTest, ADamagedCopyIsNotServedToItsHolder) {
  lease_of_job(2);
  std::string here = one_line(kHere);
  here.replace(here.find("ready"), 5, "failed");
  worker.on("catalog", "printf '%s\\n' '" + here + "'");
  start();
  const auto job = ask_for_job();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1) << "it is staged again";
}

TEST_F(PatienceTest, AnOfflineRequestIsServedTheNewestCopyOnlyWhileTheSourceIsAway) {
  start();
  ASSERT_TRUE(ends(ask(Duration(0), true)));
  EXPECT_EQ(worker.calls("stage"), 1) << "the source is there";
  source_error = gone;
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1);
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
  EXPECT_THAT(get_string(result_of(job), "unchecked").value_or(""), HasSubstr("its device is gone"));
  const auto other = ask(Duration(0));
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(kind_of(other), "unavailable");
  EXPECT_THAT(json::serialize(other->final_event()), HasSubstr("--offline"));
}

TEST_F(PatienceTest, ADatasetCanAllowEveryRequestToBeOffline) {
  settings.datasets["imagenet"].offline = true;
  start();
  source_error = gone;
  const auto job = ask(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
}

TEST_F(PatienceTest, APlainFolderThatIsGoneIsAwayTooForAnOfflineRequest) {
  worker.on(
      "stage",
      R"(echo '{"error": {"kind": "refused", "what": "/data/imagenet has become empty", "hint": ""}}')");
  start();
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(get_string(result_of(job), "unchecked"), "/data/imagenet has become empty");
  const auto strict = ask(Duration(0));
  ASSERT_TRUE(ends(strict));
  EXPECT_EQ(kind_of(strict), "refused");
}

}  // namespace
}  // namespace spark::datasets
