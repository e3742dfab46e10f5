// Jobs of schedulers, and volumes of pods, that take a dataset while it is staged: their leases and its view.
#include <fcntl.h>
#include <unistd.h>

#include "base/file.hpp"
#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const staging::SchedulerJob kLiveJob{"slurm", "123", "alice", {}, ""};
constexpr char kLease[] = "job:slurm:123:imagenet";

class LiveJobsTest : public LiveTest {
 protected:
  // A staging waits for the file `go`; one with a viewer can be read before.
  LiveJobsTest() {
    timings.jobs = {Duration(60'000), kJobGone};
    worker.on("jobs-here", R"(echo '{"result": {"slurm": ["123"]}}')");
    worker.on("stage",
              "read -r request; printf '%s\\n' \"$request\" >> stages.log; "
              "case $request in *'\"view\":'*) echo '{\"progress\": {\"readable\": true}}';; esac; " +
                  std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
    worker.on("catalog",
              R"(printf '%s\n' '{"result": {"datasets": [], "usage": {"path": "/c", "capacity_bytes": 10, )"
              R"("used_bytes": 5, "free_bytes": 5}}}')");
  }

  std::shared_ptr<Job> stage_for(const staging::SchedulerJob& of, bool now = true,
                                 std::vector<std::string> names = {"imagenet"},
                                 std::set<std::string> only = {}) {
    StageRequest request;
    request.datasets = std::move(names);
    request.job = of;
    request.now = now;
    request.now_only = std::move(only);
    request.wait.reset();
    request.asker = {staging::in_words(of), 0, of.key(), of.user};
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  static json::object result_of(const std::shared_ptr<Job>& job, std::size_t at = 0) {
    const auto event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object{} : get_array(*result, "datasets")->at(at).as_object();
  }
  std::vector<std::string> leases() {
    std::vector<std::string> ids;
    for (const auto& [id, lease] : datasets->leases().all()) ids.push_back(id);
    return ids;
  }
  std::uint64_t generation() { return datasets->leases().all().at(kLease).generation; }
};

TEST_F(LiveJobsTest, AJobHoldsTheViewAndThenTheCopyUntilItsEnd) {
  start();
  const auto job = stage_for(kLiveJob);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "state"), "live");
  EXPECT_EQ(get_string(result_of(job), "path"), "/live/imagenet");
  EXPECT_EQ(get_string(result_of(job), "lease"), kLease);
  EXPECT_THAT(leases(), ElementsAre(kLease)) << "although nothing is staged yet";
  EXPECT_EQ(generation(), 0U);
  EXPECT_EQ(state_of("imagenet"), "live");
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_TRUE(run_until(context, [&] { return generation() == 1; }));
  EXPECT_EQ(times("ended"), 0);
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  ASSERT_TRUE(has("removed"));
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(LiveJobsTest, TheEndOfTheJobEndsTheStagingAndTheView) {
  start();
  ASSERT_TRUE(ends(stage_for(kLiveJob)));
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  ASSERT_TRUE(has("removed"));
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "absent"; }));
  EXPECT_EQ(worker.calls("show-copy"), 0);
}

TEST_F(LiveJobsTest, TheHooksOfAJobShareARequestAndItsStepsTheView) {
  start();
  const auto prolog = stage_for(kLiveJob), task = stage_for(kLiveJob);
  EXPECT_EQ(prolog, task);
  EXPECT_NE(stage_for(kLiveJob, false), task) << "this one waits for the copy";
  ASSERT_TRUE(ends(task));
  const auto step = stage_for(kLiveJob);
  ASSERT_TRUE(ends(step));
  EXPECT_EQ(get_string(result_of(step), "path"), "/live/imagenet");
  EXPECT_EQ(worker.calls("serve-view"), 1);
}

TEST_F(LiveJobsTest, ARequestOfTheJobThatFailsLeavesItsViewAlone) {
  start();
  ASSERT_TRUE(ends(stage_for(kLiveJob)));
  const auto waits = stage_for(kLiveJob, false);
  ASSERT_TRUE(waits->cancel());
  ASSERT_TRUE(ends(waits));
  EXPECT_THAT(leases(), ElementsAre(kLease));
  EXPECT_EQ(state_of("imagenet"), "live");
}

TEST_F(LiveJobsTest, OnlyTheNamedDatasetsAreLive) {
  settings.datasets["models"].volume = "another";  // a drive has one copy at a time
  start();
  const auto job = stage_for(kLiveJob, true, {"imagenet", "models"}, {"imagenet"});
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "live"; }));
  EXPECT_TRUE(job->is_running()) << "it waits for the other one, whose turn comes after this one";
  touch("go");
  ASSERT_TRUE(ends(job));
  const std::string asked = text_of("stages.log");
  EXPECT_NE(asked.find("models"), std::string::npos);
  EXPECT_EQ(asked.find("\"view\":"), asked.rfind("\"view\":"));
  EXPECT_EQ(get_string(result_of(job, 1), "state"), "ready");
}

// Hooks are root's, which has a share of its own.
TEST_F(LiveJobsTest, AUserOfJobsHasAShareOfTheViews) {
  std::vector<std::string> names;
  for (int i = 0; i < 65; ++i) {
    config::Dataset dataset = settings.datasets["imagenet"];
    names.push_back(dataset.name = "d" + std::to_string(i));
    settings.datasets[dataset.name] = dataset;
  }
  start();
  (void)stage_for(kLiveJob, true, names);
  (void)stage_for({"slurm", "124", "bob", {}, ""});
  EXPECT_FALSE(get_string(row_of("d63"), "reason"));
  EXPECT_THAT(get_string(row_of("d64"), "reason").value_or(""),
              testing::EndsWith("live views already, 64 of jobs of alice"));
  EXPECT_FALSE(get_string(row_of("imagenet"), "reason"));
}

TEST_F(LiveJobsTest, ARestartedDaemonKeepsTheViewForItsJob) {
  int ends_of_pipe[2];
  ASSERT_EQ(::pipe2(ends_of_pipe, O_CLOEXEC), 0);
  const UniqueFd there(ends_of_pipe[0]);
  kept.earlier = std::make_shared<std::map<std::string, UniqueFd>>();
  (*kept.earlier)["live-12"] = UniqueFd(ends_of_pipe[1]);
  worker.on("find-views",
            R"(echo '{"result": {"views": [{"dataset": "imagenet", "folder": "/live/imagenet", )"
            R"("view": 12}]}}')");
  worker.on("lease",
            R"(echo '{"result": {"leases": [{"id": "job:slurm:123:imagenet", "dataset": "imagenet", )"
            R"("generation": 0, "holder": "h", "job": {"system": "slurm", "id": "123", "user": "", )"
            R"("processes": [], "boot": ")" +
                boot_id(SystemRoot{}) + R"("}}]}}')");
  start();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "live"; }));
  const auto waits = stage_for(kLiveJob, false);
  ASSERT_TRUE(waits->cancel());
  ASSERT_TRUE(ends(waits));
  EXPECT_THAT(leases(), ElementsAre(kLease)) << "its tasks read the view";
  touch("go");
  ASSERT_TRUE(run_until(context, [&] { return generation() == 1; }));
}

}  // namespace
}  // namespace spark::datasets
