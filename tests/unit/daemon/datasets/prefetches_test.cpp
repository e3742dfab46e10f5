// Prefetches: they run after everything else, are kept until they are requested, and never delay a staging.
#include "daemon/datasets/prefetches.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using std::chrono::hours;
using testing::HasSubstr;
using testing::Not;

class PrefetchesTest : public DatasetsTest {
 protected:
  // The worker's action for each dataset: `script`, or the usual copy.
  void for_each_dataset(const std::string& imagenet, const std::string& models) {
    worker.on("stage", note_request("stages.log") +
                           "case \"$request\" in *'\"dataset\":\"models\",\"path'*) " + models + ";; *) " +
                           imagenet + ";; esac");
  }
  static std::string until(const std::string& file) {
    return "echo $$ > " + file + ".pid; " + kBegun + "; while [ ! -e " + file + " ]; do sleep 0.02; done; " +
           staged();
  }
  void touch(const std::string& file) { std::ofstream(worker.folder() / file) << "x"; }
  std::shared_ptr<Job> prefetch(std::vector<std::string> names, std::optional<WallTime> by = {}) {
    StageRequest request;
    request.datasets = std::move(names);
    request.demand = {0, true, by};
    request.asker.holder = "a test";
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  bool copies(const std::string& file) {
    return run_until(context, [&] { return !text_of(file + ".pid").empty(); });
  }
  pid_t pid_of(const std::string& file) { return static_cast<pid_t>(std::stoi(text_of(file + ".pid"))); }
  std::vector<std::string> asked() {
    std::istringstream log(text_of("stages.log"));
    std::vector<std::string> requests;
    for (std::string line; std::getline(log, line);) requests.push_back(line);
    return requests;
  }
  const Lease* soft_lease() {
    const auto& all = datasets->leases().all();
    const auto found = all.find("prefetch:imagenet");
    return found == all.end() ? nullptr : &found->second;
  }
};

TEST_F(PrefetchesTest, APrefetchCopiesAtIdleCpuAndDiskPriority) {
  for_each_dataset(until("go"), staged());
  start();
  const auto job = prefetch({"imagenet"});
  ASSERT_TRUE(copies("go"));
  EXPECT_EQ(::sched_getscheduler(pid_of("go")), SCHED_IDLE);
  EXPECT_EQ(::syscall(SYS_ioprio_get, 1, pid_of("go")) >> 13, 3);
  touch("go");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(job->verb(), "prefetch");
}

TEST_F(PrefetchesTest, APrefetchIsSpreadOverTheTimeUntilItsDeadline) {
  start();
  ASSERT_TRUE(ends(prefetch({"imagenet"}, clock.wall() + hours(10))));
  const auto request = parse_json_object(asked().at(0));
  ASSERT_TRUE(request);
  EXPECT_EQ(get_bool(*request, "prefetch"), true);
  EXPECT_NEAR(static_cast<double>(get_int(*request, "finish_in_ms").value_or(0)), 9.5 * 3600e3, 60e3);
  ASSERT_TRUE(ends(prefetch({"imagenet"}, clock.wall() - hours(1))));
  EXPECT_THAT(asked().back(), HasSubstr(R"("finish_in_ms":0)")) << "as fast as it goes";
  ASSERT_TRUE(ends(prefetch({"imagenet"})));
  EXPECT_THAT(asked().back(), Not(HasSubstr("finish_in_ms")));
}

TEST_F(PrefetchesTest, APrefetchedCopyIsKeptUntilItsDatasetIsStaged) {
  start();
  const auto job = prefetch({"imagenet"}, clock.wall() + hours(2));
  ASSERT_TRUE(ends(job));
  ASSERT_NE(soft_lease(), nullptr);
  EXPECT_TRUE(soft_lease()->is_soft);
  EXPECT_EQ(soft_lease()->holder, "a prefetch for a test");
  const auto left = *soft_lease()->expires - clock.wall();
  EXPECT_TRUE(left > hours(25) && left < hours(27));
  EXPECT_EQ(get_array(row_of("imagenet"), "leases")->at(0).at("soft"), true);
  const json::object event = job->final_event();
  const auto& result = get_array(*get_object(event, "result"), "datasets")->at(0);
  EXPECT_EQ(result.at("lease"), "prefetch:imagenet");
  EXPECT_TRUE(result.at("late_s").is_null());
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(soft_lease(), nullptr);
}

TEST_F(PrefetchesTest, AStagingNeitherYieldsToNorSparesAPrefetchedCopy) {
  for_each_dataset(staged(), until("go"));
  start();
  ASSERT_TRUE(ends(prefetch({"imagenet"})));
  const auto job = stage_all({"models"});
  ASSERT_TRUE(copies("go"));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid_of("go"))), 0);
  EXPECT_THAT(asked().back(), Not(HasSubstr(R"({"dataset":"imagenet","generation":1})")))
      << "it may make way";
  touch("go");
  ASSERT_TRUE(ends(job));
}

TEST_F(PrefetchesTest, AStagingOfTheSameDatasetTakesThePrefetchOverAtFullSpeed) {
  for_each_dataset(
      "case \"$request\" in *'\"prefetch\":true'*) " + until("never") + ";; *) " + until("go") + ";; esac",
      staged());
  start();
  const auto early = prefetch({"imagenet"}, clock.wall() + hours(10));
  ASSERT_TRUE(copies("never"));
  const auto job = stage();
  ASSERT_TRUE(copies("go"));
  EXPECT_EQ(::sched_getscheduler(pid_of("go")), SCHED_OTHER);
  EXPECT_THAT(asked().back(), Not(HasSubstr("finish_in_ms")));
  touch("go");
  EXPECT_TRUE(ends(job) && ends(early));
  EXPECT_EQ(kind_of(early), "done");
}

TEST_F(PrefetchesTest, APrefetchWithoutADeadlinePausesDuringAStagingAndThenResumes) {
  for_each_dataset("if [ $n = 1 ]; then " + until("never") + "; else " + staged() + "; fi", until("go"));
  start();
  const auto early = prefetch({"imagenet"});
  ASSERT_TRUE(copies("never"));
  const auto job = stage_all({"models"});
  ASSERT_TRUE(copies("go"));
  EXPECT_TRUE(run_until(context, [&] { return ::kill(pid_of("never"), 0) != 0; })) << "it has stopped";
  EXPECT_TRUE(early->is_running());
  touch("go");
  EXPECT_TRUE(ends(job) && ends(early));
  EXPECT_EQ(kind_of(early), "done");
  EXPECT_EQ(asked().size(), 3u);
}

TEST_F(PrefetchesTest, APrefetchWithADeadlineContinuesDuringAStaging) {
  for_each_dataset(until("slow"), staged());
  start();
  const auto early = prefetch({"imagenet"}, clock.wall() + hours(10));
  ASSERT_TRUE(copies("slow"));
  ASSERT_TRUE(ends(stage_all({"models"})));
  EXPECT_EQ(::kill(pid_of("slow"), 0), 0);
  touch("slow");
  EXPECT_TRUE(ends(early));
  EXPECT_EQ(asked().size(), 2u);
}

constexpr char kNoRoom[] = R"(echo '{"error": {"kind": "no_space", "what": "it needs 9 TB", "hint": ""}}')";
constexpr char kReserved[] =
    R"(echo '{"result": {"reserved": true, "evicted": [{"name": "old", "bytes": 5}]}}')";

TEST_F(PrefetchesTest, APrefetchWithoutSpaceIsRefusedAtOnceEvenBehindAnotherCopy) {
  for_each_dataset(kNoRoom, until("go"));
  start();
  const auto copy = stage_all({"models"});
  ASSERT_TRUE(copies("go"));
  const auto job = prefetch({"imagenet"});
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "no_space");
  EXPECT_THAT(asked().back(), HasSubstr(R"("only_cached":true)"));
  EXPECT_TRUE(copy->is_running());
  touch("go");
  ASSERT_TRUE(ends(copy));
}

TEST_F(PrefetchesTest, APrefetchFromAVolumeBeingWrittenIsRefusedAndReservesNoSpace) {
  doubt = "being written by another host";
  worker.on("stage", note_request("stages.log") +
                         R"(echo '{"error": {"kind": "not_found", "what": "", "hint": ""}}')");
  start();
  const auto job = prefetch({"imagenet"});
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "refused");
  EXPECT_THAT(asked().back(), HasSubstr(R"("prefetch":false)"));
}

TEST_F(PrefetchesTest, APrefetchContinuesWhenAQueuedStagingIsCancelled) {
  config::Dataset third;
  third.name = "third";
  third.path = "/data/third";
  settings.datasets["third"] = third;
  for_each_dataset(staged(), until("go"));
  start();
  const auto copy = stage_all({"models"});
  ASSERT_TRUE(copies("go"));
  const auto waiting = stage_all({"third"});
  const auto early = prefetch({"imagenet"});
  EXPECT_TRUE(waiting->cancel());
  EXPECT_TRUE(ends(waiting));
  touch("go");
  EXPECT_TRUE(ends(copy) && ends(early));
  EXPECT_EQ(kind_of(early), "done");
}

TEST_F(PrefetchesTest, APrefetchOfSeveralDatasetsIsRefusedAsAWhole) {
  for_each_dataset(until("never"), kNoRoom);
  start();
  const auto job = prefetch({"imagenet", "models"});
  ASSERT_TRUE(ends(job)) << "not after the first was copied";
  EXPECT_EQ(kind_of(job), "no_space");
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(PrefetchesTest, AQueuedPrefetchReservesItsSpaceAndReportsTheEvictions) {
  for_each_dataset("case \"$request\" in *'\"only_cached\":true'*) " + std::string(kReserved) + ";; *) " +
                       staged() + ";; esac",
                   until("go"));
  start();
  const auto copy = stage_all({"models"});
  ASSERT_TRUE(copies("go"));
  const auto job = prefetch({"imagenet"});
  ASSERT_TRUE(run_until(
      context, [&] { return job->progress() && get_bool(*job->progress(), "has_room").value_or(false); }));
  EXPECT_TRUE(job->is_running());
  touch("go");
  EXPECT_TRUE(ends(copy) && ends(job));
  const json::object event = job->final_event();
  const auto& result = get_array(*get_object(event, "result"), "datasets")->at(0);
  EXPECT_EQ(result.at("evicted").at(0).at("name"), "old");
}

TEST_F(PrefetchesTest, APrefetchEndsIfAStagingNeedsItsSpace) {
  for_each_dataset(
      until("never"),
      "if [ $n = 2 ]; then echo '{\"result\": {\"blocked_by\": [\"imagenet\"]}}'; else " + staged() + "; fi");
  start();
  const auto early = prefetch({"imagenet"}, clock.wall() + hours(10));
  ASSERT_TRUE(copies("never"));
  const auto job = stage_all({"models"});
  EXPECT_TRUE(ends(job) && ends(early));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(kind_of(early), "no_space");
  EXPECT_THAT(asked().at(1), HasSubstr(R"("prefetching":["imagenet"])"));
}

TEST_F(PrefetchesTest, AnEvictedPrefetchLosesItsLease) {
  start();
  ASSERT_TRUE(ends(prefetch({"imagenet"})));
  ASSERT_NE(soft_lease(), nullptr);
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  ASSERT_TRUE(ends(stage_all({"models"})));
  EXPECT_EQ(soft_lease(), nullptr);
}

TEST_F(PrefetchesTest, APrefetchLimitedByItsSourceReportsItsExpectedDelay) {
  const auto copying = [](const std::string& more) {
    return R"(echo '{"progress": {"phase": "copying", "bytes_done": 5, "bytes_total": 9, "eta_s": 7200.0, )" +
           more + "}}'";
  };
  for_each_dataset(copying(R"("bottleneck": "source")") + "; " + until("go"),
                   copying(R"("bottleneck": "throttle")") + "; " + until("go"));
  start();
  const auto slow = prefetch({"imagenet"}, clock.wall() + hours(1));
  ASSERT_TRUE(run_until(context, [&] { return slow->progress() && slow->progress()->contains("late_s"); }));
  const auto held_back = prefetch({"models"}, clock.wall() + hours(1));
  ASSERT_TRUE(
      run_until(context, [&] { return held_back->progress() && held_back->progress()->contains("late_s"); }));
  EXPECT_TRUE(held_back->progress()->at("late_s").is_null()) << "it is as fast as it has to be";
  touch("go");
  EXPECT_TRUE(ends(slow) && ends(held_back));
}

}  // namespace
}  // namespace spark::datasets
