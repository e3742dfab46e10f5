// Turns of stagings with live views: jobs read them meanwhile.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

// Each copy notes its beginning, and waits for the file `go-NAME`, `fail-NAME` or `ends-NAME`; its walk while
// there is `walks-NAME`.
class LiveTurnsTest : public LiveTest {
 protected:
  LiveTurnsTest() {
    worker.on(
        "stage",
        note_request("stages.log") +
            "name=$(printf '%s' \"$request\" | sed 's/.*\"dataset\":\"\\([^\"]*\\)\",\"path\".*/\\1/'); "
            "echo $name >> begun; while [ -e walks-$name ]; do sleep 0.02; done; "
            "case $request in *'\"view\":'*) echo '{\"progress\": {\"readable\": true}}';; esac; " +
            std::string(kBegun) + "; while [ ! -e go-$name ]; do if [ -e fail-$name ]; then rm fail-$name; " +
            kTrouble +
            "; exit; fi; if [ -e ends-$name ]; then echo '{\"error\": {\"kind\": \"no_space\", "
            "\"what\": \"it is full\", \"hint\": \"\"}}'; exit; fi; sleep 0.02; done; " +
            staged());
  }
  std::shared_ptr<Job> stage_both_now() {
    StageRequest request;
    request.datasets = {"imagenet", "models"};
    request.now = true;
    request.lease = std::chrono::hours(1);
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job);
    return *job;
  }
  void add(const std::string& name, const std::string& drive) {
    config::Dataset dataset;
    dataset.name = name;
    dataset.path = "/data/" + name;
    dataset.volume = drive;
    settings.datasets[name] = dataset;
  }
  std::shared_ptr<Job> stage_plainly(const std::string& name, Bytes max_rate = 0, uid_t user = 0) {
    StageRequest request;
    request.datasets = {name};
    request.asker.uid = user;
    request.demand.max_rate = max_rate;
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job);
    return *job;
  }
  int begun(const std::string& name) {
    std::istringstream all(text_of("begun"));
    return static_cast<int>(std::count(std::istream_iterator<std::string>(all), {}, name));
  }
  bool begins(const std::string& name, int times = 1) {
    return run_until(context, [&] { return begun(name) >= times; });
  }
};

TEST_F(LiveTurnsTest, AJobOfSeveralLiveDatasetsBeginsBeforeAnyIsComplete) {
  start_empty();
  const auto job = stage_both_now();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(begun("imagenet") + begun("models"), 2) << "from one drive";
  EXPECT_EQ(state_of("models"), "live");
}

TEST_F(LiveTurnsTest, AJobGetsTheCopyOfOneThatIsCompleteBeforeTheOtherCanBeRead) {
  touch("walks-models");
  start_empty();
  const auto job = stage_both_now();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "live"; }));
  touch("go-imagenet");
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().size() == 1; }));
  EXPECT_TRUE(job->is_running());
  std::filesystem::remove(worker.folder() / "walks-models");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "ready");
  EXPECT_EQ(get_string(dataset_of(job), "path"), "/c/1");
  EXPECT_EQ(leased_generation(), 1U);
}

TEST_F(LiveTurnsTest, AJobGetsNoViewThatHasFailedBeforeTheOtherCanBeRead) {
  touch("walks-models");
  start_empty();
  const auto job = stage_both_now();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "live"; }));
  touch("ends-imagenet");
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "failed"; }));
  std::filesystem::remove(worker.folder() / "walks-models");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "no_space");
  EXPECT_EQ(leased_generation(), 99U) << "none";
}

// What is copied without a view goes on beside one, else it might wait for all that follow.
TEST_F(LiveTurnsTest, ALiveStagingThatBeginsAgainKeepsItsTurn) {
  start_empty();
  ASSERT_TRUE(ends(stage_now(100)));
  const auto other = stage_plainly("models", 100);
  ASSERT_TRUE(begins("models"));
  const auto faster = stage_plainly("imagenet", 200);
  EXPECT_TRUE(begins("imagenet", 2)) << "although the other one is not complete";
  EXPECT_TRUE(other->is_running());
  EXPECT_EQ(state_of("imagenet"), "live");
  for (const auto& job : {other, faster}) std::ignore = job->cancel();
}

// With two of their own users have no further place while others copy.
TEST_F(LiveTurnsTest, AUsersLiveStagingThatBeginsAgainKeepsItsPlaceAmongOthers) {
  for (const char* name : {"a", "b", "c", "d"}) add(name, name);
  start_empty();
  ASSERT_TRUE(ends(stage_now(100, 1000)));
  ASSERT_TRUE(ends(stage_now(0, 1000, "d")));
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* name : {"a", "b", "c"})
    jobs.push_back(stage_plainly(name, 0, 1001 + static_cast<uid_t>(jobs.size())));
  ASSERT_TRUE(begins("a") && begins("b") && begins("c"));
  jobs.push_back(stage_plainly("imagenet", 200, 1000));
  EXPECT_TRUE(begins("imagenet", 2));
  for (const auto& job : jobs) std::ignore = job->cancel();
}

TEST_F(LiveTurnsTest, ALiveStagingWaitsForACopyOfItsDrive) {
  start_empty();
  const auto first = stage_plainly("models");
  ASSERT_TRUE(begins("models"));
  const auto job = stage_now();
  context.run_for(Duration(200));
  EXPECT_EQ(begun("imagenet"), 0) << "the job may need both";
  touch("go-models");
  EXPECT_TRUE(ends(job));
  EXPECT_TRUE(ends(first));
}

TEST_F(LiveTurnsTest, WhatJobsReadHasTheNextPlaceAndSaysThatItWaits) {
  for (const char* name : {"a", "b", "c", "d", "e"}) add(name, name);
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* name : {"a", "b", "c", "d", "e"}) jobs.push_back(stage_plainly(name));
  ASSERT_TRUE(begins("a") && begins("b") && begins("c"));
  touch("fail-imagenet");  // as if its source had been away for a moment
  ASSERT_TRUE(begins("d")) << "it has the place";
  ASSERT_TRUE(run_until(
      context, [&] { return get_string(row_of("imagenet"), "reason") == "its copying waits for its turn"; }));
  EXPECT_EQ(state_of("imagenet"), "live");
  touch("go-a");
  EXPECT_TRUE(begins("imagenet", 2));
  EXPECT_EQ(begun("e"), 0) << "it has waited for longer";
  for (const auto& job : jobs) std::ignore = job->cancel();
}

}  // namespace
}  // namespace spark::datasets
