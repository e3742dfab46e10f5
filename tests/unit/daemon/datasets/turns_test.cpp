// Work that yields to copies and jobs.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

class YieldTest : public DatasetsTest {
 protected:
  // Stages `models` with a worker that waits until the test ends it. Returns that worker's process.
  pid_t start_copying() {
    worker.on("stage", "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; " + staged());
    job = stage_all({"models"});
    EXPECT_TRUE(run_until(context, [&] { return !text_of("pid").empty(); }));
    return static_cast<pid_t>(std::stoi(text_of("pid")));
  }
  void let_go() {
    std::ofstream(worker.folder() / "go") << "x";
    EXPECT_TRUE(ends(job));
  }
  static bool is_idle(pid_t pid) {
    const long io = ::syscall(SYS_ioprio_get, 1, pid);
    return ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 19 && io >> 13 == 3;
  }
  std::shared_ptr<Job> job;
};

TEST_F(YieldTest, ACachedDatasetIsServedDuringAnotherCopy) {
  start();
  start_copying();
  worker.on("stage", "grep -q '\"only_cached\":true' && " + staged());
  EXPECT_TRUE(ends(stage_all({"imagenet"})));
  EXPECT_TRUE(job->is_running());
  let_go();
}

TEST_F(YieldTest, ADatasetMissingFromTheCacheWaitsForItsTurn) {
  start();
  start_copying();
  worker.on("stage",
            "if grep -q '\"only_cached\":true'; then touch asked; echo '{\"error\": {\"kind\": "
            "\"not_found\", \"what\": \"not in the cache\", \"hint\": \"\"}}'; else " +
                staged() + "; fi");
  const auto second = stage_all({"imagenet"});
  EXPECT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "asked"); }));
  EXPECT_TRUE(second->is_running());
  let_go();
  EXPECT_TRUE(ends(second));
}

TEST_F(YieldTest, ACopyRunsAtIdlePriorityWhileADatasetIsLeased) {
  if (::geteuid() != 0) GTEST_SKIP() << "raising a priority again needs root";
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  const pid_t copier = start_copying();
  EXPECT_TRUE(run_until(context, [&] { return is_idle(copier); }));
  const std::string id = datasets->leases().of("imagenet").front()->id;
  EXPECT_TRUE(datasets->leases().release(id));
  EXPECT_TRUE(run_until(context, [&] { return !is_idle(copier); })) << "at once when the lease ends";
  let_go();
}

TEST_F(YieldTest, ACopyDoesNotYieldIfTheConfigurationDisablesIt) {
  settings.cache.yield = false;
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  const pid_t copier = start_copying();
  context.run_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_idle(copier));
  settings.cache.yield = true;
  datasets->config_changed();
  EXPECT_TRUE(is_idle(copier));
  let_go();
}

TEST_F(YieldTest, ACopyDoesNotYieldToALeaseOfItsOwnRequest) {
  worker.on(
      "stage",
      "if grep -q '\"models\",\"path\"'; then echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; fi; " +
          staged());
  start();
  StageRequest request;
  request.datasets = {"imagenet", "models"};
  request.lease = std::chrono::hours(1);
  job = *datasets->requests().stage(std::move(request));
  ASSERT_TRUE(run_until(
      context, [&] { return datasets->leases().of("imagenet").size() == 1 && !text_of("pid").empty(); }));
  EXPECT_FALSE(is_idle(static_cast<pid_t>(std::stoi(text_of("pid")))));
  let_go();
  EXPECT_EQ(datasets->leases().all().size(), 2u);
}

}  // namespace
}  // namespace spark::datasets
