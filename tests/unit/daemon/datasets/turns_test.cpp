// Work that yields to copies and jobs.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

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

// Each copy is on a drive of its own unless `drive` is set, and waits until the test ends it.
class UserTurnsTest : public DatasetsTest {
 protected:
  UserTurnsTest() {
    worker.on("stage",
              "read -r request; name=$(printf '%s' \"$request\" | sed "
              "'s/.*\"dataset\":\"\\([^\"]*\\)\",\"path\".*/\\1/'); "
              "echo $name >> begun; while [ ! -e go-$name ]; do sleep 0.02; done; " +
                  staged());
  }
  std::shared_ptr<Job> stage_as(uid_t user, const std::string& name, const std::string& drive,
                                Bytes rate = 0) {
    config::Dataset dataset;
    dataset.name = name;
    dataset.path = "/data/" + name;
    dataset.volume = drive;
    settings.datasets[name] = dataset;
    StageRequest request;
    request.datasets = {name};
    request.asker.uid = user;
    request.demand.max_rate = rate;
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job);
    return *job;
  }
  bool has_begun(const std::string& name) {
    return run_until(context,
                     [&] { return ("\n" + text_of("begun")).find("\n" + name + "\n") != std::string::npos; });
  }
  void end(const std::string& name) { std::ofstream(worker.folder() / ("go-" + name)) << "x"; }
};

TEST_F(UserTurnsTest, AUsersCopiesKeepNeitherRootNorAnotherUserFromStaging) {
  start();
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) jobs.push_back(stage_as(1000, name, name, 1000));
  for (const char* name : {"a1", "a2", "a3", "a4"}) EXPECT_TRUE(has_begun(name)) << name;
  jobs.push_back(stage_as(0, "root", "r"));
  EXPECT_TRUE(has_begun("root"));
  jobs.push_back(stage_as(1001, "b1", "a1", 1000));
  EXPECT_TRUE(has_begun("b1")) << "also with a rate, from the same drive";
  EXPECT_EQ(text_of("begun").find("a5"), std::string::npos);
  for (const auto& job : jobs) std::ignore = job->cancel();
}

TEST_F(UserTurnsTest, UsersHaveTurnsOneByOneAndRootWaitsForNone) {
  start();
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* name : {"a1", "a2", "a3"}) jobs.push_back(stage_as(1000, name, "drive"));
  ASSERT_TRUE(has_begun("a1"));
  jobs.push_back(stage_as(1001, "b1", "drive"));
  jobs.push_back(stage_as(0, "r1", "drive"));
  jobs.push_back(stage_as(0, "r2", "drive"));
  ASSERT_TRUE(has_begun("r1"));
  for (const char* name : {"a1", "r1", "b1", "r2", "a2"}) {
    end(name);
    ASSERT_TRUE(has_begun(name)) << name;
    ASSERT_TRUE(run_until(context, [&] {
      return std::ranges::none_of(
          jobs, [&](const auto& job) { return job->subjects().front() == name && job->is_running(); });
    }));
  }
  EXPECT_TRUE(has_begun("a3"));
  const std::string begun = text_of("begun");
  EXPECT_LT(begun.find("b1"), begun.find("a2"));
  for (const auto& job : jobs) std::ignore = job->cancel();
}

// As from a file system of a user in user space that answers no more, or a byte a second.
TEST_F(UserTurnsTest, ACopyThatBarelyMovesLetsAnotherUsersGoFirst) {
  timings.turn = Duration(0);
  worker.on(
      "stage",
      "read -r request; name=$(printf '%s' \"$request\" | sed "
      "'s/.*\"dataset\":\"\\([^\"]*\\)\",\"path\".*/\\1/'); "
      "echo $name >> begun; [ $name = other ] || while :; do echo '{\"progress\": {\"phase\": \"walking\", "
      "\"bytes_done\": 0}}'; sleep 0.02; done; " +
          staged());
  start();
  const auto slow = stage_as(1000, "slow", "drive");
  ASSERT_TRUE(has_begun("slow"));
  EXPECT_TRUE(ends(stage_as(1001, "other", "drive")));
  EXPECT_TRUE(slow->is_running());
  std::ignore = slow->cancel();
}

}  // namespace
}  // namespace spark::datasets
