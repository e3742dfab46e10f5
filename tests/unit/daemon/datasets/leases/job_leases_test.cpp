// Leases of a scheduler's jobs: held from the request on, ended by the epilog or when no process of the job
// is left.
#include "daemon/datasets/leases/job_leases.hpp"
#include "base/file.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const staging::SchedulerJob kJob{"slurm", "123", "alice", {}, ""};

class JobLeasesTest : public DatasetsTest {
 protected:
  JobLeasesTest() {
    timings.jobs = {Duration(5), kJobGone};
    jobs_here({"123"});
  }
  void jobs_here(const std::vector<std::string>& ids) {
    std::string list;
    for (const std::string& id : ids) list += (list.empty() ? "\"" : ", \"") + id + "\"";
    worker.on("jobs-here", "echo '{\"result\": {\"slurm\": [" + list + "]}}'");
  }
  // Stagings wait for let_go().
  void wait_in_stage() {
    worker.on("stage", note_request("stages.log") + "while [ ! -e go ]; do sleep 0.02; done; " + staged());
  }
  void let_go() { std::ofstream(worker.folder() / "go") << "x"; }
  StageRequest request_of(const staging::SchedulerJob& of, std::vector<std::string> names = {"imagenet"}) {
    StageRequest request;
    request.datasets = std::move(names);
    request.job = of;
    request.asker = {staging::in_words(of), 0, of.key(), of.user};
    return request;
  }
  std::shared_ptr<Job> stage_for(const staging::SchedulerJob& of) {
    auto job = datasets->requests().stage(request_of(of));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  std::vector<std::string> leases() {
    std::vector<std::string> ids;
    for (const auto& [id, lease] : datasets->leases().all()) ids.push_back(id);
    return ids;
  }
  const Lease& lease(const std::string& id) { return datasets->leases().all().at(id); }
  // Waits until the last operation sent to the catalog for this lease matches.
  bool catalog_has(const std::string& id, bool held) {
    return run_until(context, [&] {
      std::istringstream log(text_of("leases.log"));
      std::string last;
      for (std::string line; std::getline(log, line);) {
        if (line.find('"' + id + '"') != std::string::npos) last = line;
      }
      return last.find(held ? R"("op":"add")" : R"("op":"remove")") != std::string::npos;
    });
  }
  bool looked(int more) {
    const int before = worker.calls("jobs-here");
    return run_until(context, [&] { return worker.calls("jobs-here") >= before + more; });
  }
};

TEST_F(JobLeasesTest, AJobLeaseIsHeldFromTheRequestOn) {
  wait_in_stage();
  start();
  const auto job = stage_for(kJob);
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
  EXPECT_FALSE(lease("job:slurm:123:imagenet").is_staged());
  EXPECT_TRUE(catalog_has("job:slurm:123:imagenet", true));
  EXPECT_EQ(datasets->upkeep().evict("imagenet").error().kind, Errc::Refused);
  let_go();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(lease("job:slurm:123:imagenet").generation, 1u);
  const auto shown = get_array(row_of("imagenet"), "leases")->at(0).as_object();
  EXPECT_EQ(get_string(shown, "holder"), "slurm job 123 (alice)");
  EXPECT_EQ(shown.at("job"), (json::value{{"system", "slurm"}, {"id", "123"}, {"user", "alice"}}));
}

TEST_F(JobLeasesTest, RequestsOfOneJobForOneDatasetShareALeaseWithAllTheirProcesses) {
  wait_in_stage();
  start();
  const auto prolog = stage_for(kJob);
  auto with_process = kJob;
  with_process.processes = {staging::process_with(::getpid())};
  const auto task = stage_for(with_process);
  let_go();
  ASSERT_TRUE(ends(prolog) && ends(task));
  EXPECT_EQ(worker.calls("stage"), 1) << "the second request joins the first";
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
  EXPECT_THAT(lease("job:slurm:123:imagenet").job.processes, ElementsAre(staging::process_with(::getpid())));
  ASSERT_TRUE(ends(stage_for(kJob))) << "the next step";
  EXPECT_EQ(lease("job:slurm:123:imagenet").job.processes.size(), 1u);
}

TEST_F(JobLeasesTest, TwoJobsShareOneCopyAndTheirLeasesEndSeparately) {
  wait_in_stage();
  start();
  const auto first = stage_for(kJob), second = stage_for({"slurm", "124", "bob", {}, ""});
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet", "job:slurm:124:imagenet"));
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  ASSERT_TRUE(ends(first));
  EXPECT_EQ(kind_of(first), "cancelled");
  EXPECT_TRUE(second->is_running());
  let_go();
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(kind_of(second), "done");
  EXPECT_EQ(worker.calls("stage"), 1);
  EXPECT_THAT(leases(), ElementsAre("job:slurm:124:imagenet"));
}

TEST_F(JobLeasesTest, EachArrayTaskEndsOnlyItsOwnLease) {
  start();
  for (const char* id : {"200", "201", "202"}) ASSERT_TRUE(ends(stage_for({"slurm", id, "alice", {}, ""})));
  ASSERT_TRUE(datasets->job_leases().end("slurm:201"));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:200:imagenet", "job:slurm:202:imagenet"));
}

TEST_F(JobLeasesTest, EndingAJobsLeasesCancelsAStagingThatNoOtherJobWaitsFor) {
  wait_in_stage();
  start();
  const auto job = stage_for(kJob);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") == 1; }));
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  ASSERT_TRUE(ends(job));
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  EXPECT_THAT(leases(), IsEmpty());
  EXPECT_TRUE(catalog_has("job:slurm:123:imagenet", false));
}

TEST_F(JobLeasesTest, AllLeasesOfAJobEndTogether) {
  start();
  ASSERT_TRUE(ends(*datasets->requests().stage(request_of(kJob, {"imagenet", "models"}))));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet", "job:slurm:123:models"));
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  EXPECT_THAT(leases(), IsEmpty());
  EXPECT_EQ(datasets->job_leases().end("slurm:123").error().kind, Errc::NotFound) << "the epilog ran twice";
  EXPECT_EQ(datasets->job_leases().end("slurm:12").error().kind, Errc::NotFound);
}

TEST_F(JobLeasesTest, ARequeuedJobGetsItsLeaseAgain) {
  start();
  ASSERT_TRUE(ends(stage_for(kJob)));
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  ASSERT_TRUE(ends(stage_for(kJob)));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
  EXPECT_TRUE(catalog_has("job:slurm:123:imagenet", true)) << "the removal does not come after the renewal";
}

TEST_F(JobLeasesTest, AFailedStagingLeavesNoLease) {
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')");
  start();
  const auto first = stage_for(kJob), second = stage_for(kJob);
  ASSERT_TRUE(ends(first) && ends(second));
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(JobLeasesTest, AJobWhoseCopyIsDamagedKeepsTheGenerationItStartedWith) {
  std::string damaged = one_line(kRows);
  damaged.replace(damaged.find("ready"), 5, "failed");
  worker.on("catalog", "printf '%s\\n' '{\"result\": " + damaged + "}'");
  worker.on("stage", "echo '{\"result\": {\"path\": \"/c/'$n'\", \"generation\": '$n'}}'");
  start();
  ASSERT_TRUE(ends(stage_for(kJob)));
  const auto later = stage_for(kJob);
  ASSERT_TRUE(ends(later));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet", "job:slurm:123:imagenet@2"));
  EXPECT_EQ(lease("job:slurm:123:imagenet").generation, 1u);
  ASSERT_TRUE(datasets->job_leases().end("slurm:123"));
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(JobLeasesTest, ALeaseEndsOnceItsJobHasHadNoProcessForTheGracePeriod) {
  timings.jobs.gone = Duration(0);
  start();
  ASSERT_TRUE(ends(stage_for(kJob)));
  ASSERT_TRUE(looked(3));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet")) << "it has a step here";
  jobs_here({"12", "1234"});
  EXPECT_TRUE(run_until(context, [&] { return leases().empty(); }));
}

TEST_F(JobLeasesTest, ALeaseIsKeptForTenMinutesWithoutAProcess) {
  jobs_here({});
  start();
  ASSERT_TRUE(ends(stage_for(kJob)));
  ASSERT_TRUE(looked(3));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet")) << "a prolog ran, the first step is to come";
}

TEST_F(JobLeasesTest, ALeaseIsKeptWhileANamedProcessRuns) {
  jobs_here({});
  timings.jobs.gone = Duration(0);
  start();
  auto with_process = kJob;
  with_process.processes = {staging::process_with(::getpid())};
  ASSERT_TRUE(ends(stage_for(with_process)));
  ASSERT_TRUE(looked(3));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
}

TEST_F(JobLeasesTest, ALeaseOfAPodsVolumeEndsOnlyByRelease) {
  jobs_here({});
  timings.jobs.gone = Duration(0);
  start();
  const staging::SchedulerJob volume{"csi", "csi-1f", "team-a/train-0", {}, ""};
  ASSERT_TRUE(ends(stage_for(volume)));
  ASSERT_TRUE(ends(stage_for(kJob)));
  ASSERT_TRUE(run_until(context, [&] { return leases().size() == 1; })) << "the job of Slurm is gone";
  EXPECT_THAT(leases(), ElementsAre("job:csi:csi-1f:imagenet"));
  EXPECT_EQ(datasets->job_leases().user_of("csi:csi-1f"), "") << "no user of this host may end it";
  ASSERT_TRUE(datasets->job_leases().end("csi:csi-1f"));
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(JobLeasesTest, LeasesAreKeptWhileTheRunningJobsAreUnknown) {
  worker.on("jobs-here", R"(echo '{"error": {"kind": "failed", "what": "no /proc", "hint": ""}}')");
  timings.jobs.gone = Duration(0);
  start();
  ASSERT_TRUE(ends(stage_for(kJob)));
  ASSERT_TRUE(looked(3));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
}

TEST_F(JobLeasesTest, LeasesSurviveADaemonRestartButNotAReboot) {
  const std::string boot = boot_id(SystemRoot{});
  ASSERT_FALSE(boot.empty());
  const auto lease = [](const std::string& id, const std::string& in) {
    return R"({"id": "job:slurm:)" + id +
           R"(:imagenet", "dataset": "imagenet", "generation": 1, "holder": "h",)" +
           R"("job": {"system": "slurm", "id": ")" + id + R"(", "user": "", "processes": [], "boot": ")" +
           in + "\"}}";
  };
  worker.on("lease", note_request("leases.log") + "echo '{\"result\": {\"leases\": [" + lease("123", boot) +
                         ", " + lease("124", "another") + "]}}'");
  start();
  EXPECT_TRUE(run_until(context, [&] { return leases().size() == 1; }));
  EXPECT_THAT(leases(), ElementsAre("job:slurm:123:imagenet"));
  EXPECT_TRUE(catalog_has("job:slurm:124:imagenet", false));
}

TEST_F(JobLeasesTest, AStagingDoesNotYieldToItsOwnJobsLease) {
  worker.on("stage", "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start();
  const auto job = stage_for(kJob), joined = stage_for(kJob);
  ASSERT_TRUE(run_until(context, [&] { return !text_of("pid").empty(); }));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(text_of("pid")))), 0);
  let_go();
  ASSERT_TRUE(ends(job));
}

TEST_F(JobLeasesTest, LeaseIdsEscapeTheDatasetsName) {
  EXPECT_EQ(staging::job_lease_id(kJob, "imagenet"), "job:slurm:123:imagenet");
  EXPECT_EQ(staging::job_lease_id(kJob, "raid:a/b@2"), "job:slurm:123:raid%3aa%2fb%402");
}

}  // namespace
}  // namespace spark::datasets
