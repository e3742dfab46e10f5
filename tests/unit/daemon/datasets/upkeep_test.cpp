// Maintenance of existing copies: verified on request and periodically.
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

constexpr char kGood[] = R"(echo '{"result": {"dataset": "a", "bytes": 5, "files": 1, "seconds": 0.5}}')";
constexpr char kDamaged[] =
    R"(echo '{"error": {"kind": "mismatch", "what": "imagenet: f has other content", "hint": ""}}')";

class UpkeepTest : public DatasetsTest {
 protected:
  void rows(const std::string& rows) {
    worker.on("catalog", "printf '%s\\n' '{\"result\": {\"datasets\": [" + rows + "], \"usage\": {}}}'");
  }
  std::string row(const std::string& name, const std::string& state, std::int64_t good_at_s) {
    return R"({"name": ")" + name + R"(", "state": ")" + state + R"(", "path": "/c/1", "good_at_s": )" +
           std::to_string(good_at_s) + "}";
  }
  std::int64_t days_ago(int days) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock.wall().time_since_epoch());
    return now.count() - days * 86400;
  }
};

TEST_F(UpkeepTest, AScrubReportsTheResultOfEveryDataset) {
  settings.cache.scrub.reset();
  rows(row("imagenet", "ready", days_ago(0)) + ", " + row("models", "ready", days_ago(0)));
  worker.on("verify", std::string("if grep -q imagenet; then ") + kDamaged + "; else " + kGood + "; fi");
  start();
  const auto job = datasets->upkeep().scrub({});
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  const auto event = (*job)->final_event();
  const json::array& verdicts = *get_array(*get_object(event, "result"), "datasets");
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(get_string(verdicts[0].as_object(), "state"), "failed");
  EXPECT_THAT(*get_string(verdicts[0].as_object(), "reason"), HasSubstr("f has other content"));
  EXPECT_EQ(get_string(verdicts[1].as_object(), "state"), "ready");
  EXPECT_EQ(get_int(verdicts[1].as_object(), "bytes"), 5);
}

TEST_F(UpkeepTest, AUsersVerificationsAndScrubsHaveFourWorkersEachAndRootWaitsForNone) {
  worker.on("verify", note_request("verifies.log") + "sleep 600");
  start();
  const Asker user{.uid = 1000};
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(*datasets->upkeep().verify("imagenet", false, user));
  for (int i = 0; i < 6; ++i) jobs.push_back(*datasets->upkeep().scrub({"imagenet"}, user));
  for (int i = 0; i < 5; ++i) jobs.push_back(*datasets->upkeep().verify("imagenet", false));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("verify") == 4 + 4 + 5; }));
  context.restart();
  context.run_for(std::chrono::milliseconds(100));
  EXPECT_EQ(worker.calls("verify"), 4 + 4 + 5);
  ASSERT_TRUE(jobs[5]->cancel());
  ASSERT_TRUE(ends(jobs[5])) << "one that waits ends at once";
  ASSERT_TRUE(jobs[0]->cancel());
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("verify") == 4 + 4 + 5 + 1; }));
  for (const auto& job : jobs) std::ignore = job->cancel();
}

TEST_F(UpkeepTest, UpkeepOfAnUnknownDatasetIsNotFound) {
  start();
  for (const auto& refused :
       {datasets->upkeep().scrub({"imagenot"}), datasets->upkeep().verify("imagenot", false),
        datasets->upkeep().evict("imagenot")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Errc::NotFound);
  }
}

TEST_F(UpkeepTest, AMistypedNameGetsASuggestion) {
  start();
  const auto mistyped = datasets->upkeep().evict("imagenett");
  ASSERT_FALSE(mistyped);
  EXPECT_EQ(mistyped.error().hint, "did you mean 'imagenet'?");
  EXPECT_EQ(datasets->upkeep().evict("xyzzy").error().hint, "`spark-stage ls` lists the staged datasets");
}

TEST_F(UpkeepTest, EvictingADatasetBeingStagedIsRefusedAndNamesTheJobsToCancel) {
  worker.on("stage", "sleep 600");
  start();
  const auto first = stage(), second = stage();
  const auto stages = datasets->stages();
  ASSERT_EQ(stages.size(), 1U);
  const std::string id = std::to_string(first->id()), other = std::to_string(second->id());
  EXPECT_EQ(stages[0].at("jobs"), (json::array{json::value(id), json::value(other)}));
  const auto refused = datasets->upkeep().evict("imagenet");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("`spark-stage cancel " + id + " " + other + "`"));
  EXPECT_TRUE(first->cancel());
  EXPECT_EQ(datasets->stages()[0].at("jobs"), json::array{json::value(other)}) << "it goes on for the other";
  EXPECT_TRUE(second->cancel());
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(UpkeepTest, ADamagedCopyIsFailedUntilItIsStagedAgain) {
  start();
  EXPECT_EQ(state_of("imagenet"), "ready");
  worker.on("verify", kDamaged);
  rows(R"({"name": "imagenet", "state": "failed", "reason": "f has other content", "path": "/c/1"})");
  const auto job = datasets->upkeep().verify("imagenet", false);
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  EXPECT_EQ(kind_of(*job), "mismatch");
  EXPECT_EQ(state_of("imagenet"), "failed");
  EXPECT_EQ(get_string(row_of("imagenet"), "reason"), "f has other content");
  worker.on("stage", R"(echo '{"progress": {"phase": "copying", "bytes_done": 1}}'; sleep 600)");
  const auto again = stage();
  EXPECT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  EXPECT_TRUE(again->cancel());
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(UpkeepTest, TheLongestUnverifiedCopyIsScrubbedAutomaticallyAtIdlePriority) {
  settings.cache.scrub = std::chrono::hours(30 * 24);
  rows(row("fresh", "ready", days_ago(1)) + ", " + row("old", "ready", days_ago(31)) + ", " +
       row("oldest", "ready", days_ago(99)) + ", " + row("damaged", "failed", days_ago(999)));
  worker.on("verify", "cat >> verifies.log; nice >> verifies.log; sleep 0.1; " + std::string(kGood));
  start();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("verify") >= 1; }));
  ASSERT_TRUE(run_until(context, [&] { return text_of("verifies.log").find("19\n") != std::string::npos; }));
  EXPECT_THAT(text_of("verifies.log"), HasSubstr(R"("dataset":"oldest")"));
  EXPECT_THAT(text_of("verifies.log"), testing::Not(HasSubstr("fresh")));
  EXPECT_TRUE(row_of("oldest").if_contains("good_at_s") == nullptr) << "the daemon's own";
}

TEST_F(UpkeepTest, AStagingThatWaitsForItsSourceDoesNotPreventScrubbing) {
  settings.cache.scrub = std::chrono::hours(30 * 24);
  rows(row("old", "ready", days_ago(31)));
  worker.on("verify", kGood);
  start();
  source_error = Error{Errc::Unavailable, "volume datasets is lost", ""};
  StageRequest request;
  request.datasets = {"imagenet"};
  request.wait.reset();
  const auto waits = *datasets->requests().stage(std::move(request));
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("verify") >= 1; }));
  EXPECT_TRUE(waits->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(UpkeepTest, AFailedScrubIsNotRetriedImmediately) {
  settings.cache.scrub = std::chrono::hours(30 * 24);
  rows(row("old", "ready", days_ago(31)));
  worker.on("verify", R"(echo '{"error": {"kind": "failed", "what": "no memory", "hint": ""}}')");
  start();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("verify") == 1; }));
  context.run_for(std::chrono::milliseconds(300));
  EXPECT_EQ(worker.calls("verify"), 1);
}

TEST_F(UpkeepTest, NoScrubRunsIfScrubbingIsOff) {
  settings.cache.scrub.reset();
  rows(row("old", "ready", 0));
  start();
  context.run_for(std::chrono::milliseconds(300));
  EXPECT_EQ(worker.calls("verify"), 0);
}

TEST_F(UpkeepTest, RemainsOfAFailedStagingCanBeEvicted) {
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(state_of("imagenet"), "failed");
  const auto job = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  EXPECT_EQ(state_of("imagenet"), "absent");
}

TEST_F(UpkeepTest, EvictingAfterTheLeasesReleaseWaitsUntilTheCatalogHasIt) {
  worker.on("evict", std::string("if [ -e released ]; then ") +
                         R"(echo '{"result": {"dataset": "imagenet", "freed_bytes": 5}}'; else )" +
                         R"(echo '{"error": {"kind": "refused", "what": "it is leased", "hint": ""}}'; fi)");
  start();
  ASSERT_TRUE(ends(stage(std::chrono::minutes(1))));
  const std::string id = datasets->leases().of("imagenet").front()->id;
  worker.on("lease",
            "if grep -q '\"" + id + "\"'; then sleep 0.2; touch released; fi; echo '{\"result\": {}}'");
  ASSERT_TRUE(datasets->leases().release(id));
  const auto job = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  EXPECT_EQ(kind_of(*job), "done");
}

class WaitingEvictionTest : public UpkeepTest {
 protected:
  const Asker user_{.uid = 1000};
  std::vector<std::shared_ptr<Job>> running_;

  // As many as a user may have at once: until `go`, a further one waits for its turn.
  void take_all_turns() {
    worker.on("evict",
              R"(q=$(cat); until [ -e go ]; do sleep 0.02; done
                 case "$q" in *imagenet*) if [ ! -e released ]; then
                   echo '{"error": {"kind": "refused", "what": "it is leased", "hint": ""}}'; exit; fi;; esac
                 echo '{"result": {"freed_bytes": 5}}')");
    for (const char* name : {"a", "b", "c", "d"}) settings.datasets[name] = settings.datasets["models"];
    start();
    for (const char* name : {"a", "b", "c", "d"}) running_.push_back(*datasets->upkeep().evict(name, user_));
    ASSERT_TRUE(run_until(context, [&] { return worker.calls("evict") == 4; }));
  }
  void go() { std::ofstream(worker.folder() / "go") << "now"; }
};

TEST_F(WaitingEvictionTest, ItsDatasetIsServedUntilItsTurnAndThenSparedIfLeased) {
  take_all_turns();
  const auto waits = *datasets->upkeep().evict("imagenet", user_);
  ASSERT_TRUE(run_until(context, [&] { return waits->progress().has_value(); }));
  EXPECT_EQ(state_of("imagenet"), "ready");
  const auto staged = stage(std::chrono::minutes(1));
  ASSERT_TRUE(ends(staged));
  EXPECT_EQ(kind_of(staged), "done");
  go();
  ASSERT_TRUE(ends(waits));
  EXPECT_EQ(kind_of(waits), "refused");
  EXPECT_EQ(worker.calls("evict"), 4);
}

TEST_F(WaitingEvictionTest, ItIsCancelledWhileItWaitsAndNotLater) {
  take_all_turns();
  const auto waits = *datasets->upkeep().evict("imagenet", user_);
  ASSERT_TRUE(run_until(context, [&] { return waits->progress().has_value(); }));
  ASSERT_TRUE(waits->cancel());
  ASSERT_TRUE(ends(waits));
  EXPECT_EQ(kind_of(waits), "cancelled");
  EXPECT_FALSE(running_[0]->cancel());
  go();
  for (const auto& job : running_) EXPECT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("evict"), 4);
}

TEST_F(WaitingEvictionTest, ALeaseThatIsReleasedWhileItWaitsIsOverInTheCatalogToo) {
  take_all_turns();
  const auto waits = *datasets->upkeep().evict("imagenet", user_);
  ASSERT_TRUE(ends(stage(std::chrono::minutes(1))));
  ASSERT_FALSE(datasets->leases().of("imagenet").empty());
  const std::string id = datasets->leases().of("imagenet").front()->id;
  worker.on("lease", "if grep -q '\"" + id +
                         "\"'; then touch releasing; until [ -e go ]; do sleep 0.02; done; sleep 0.5; touch "
                         "released; fi; echo '{\"result\": {}}'");
  ASSERT_TRUE(datasets->leases().release(id));
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "releasing"); }));
  go();
  ASSERT_TRUE(ends(waits));
  EXPECT_EQ(kind_of(waits), "done");
}

TEST_F(UpkeepTest, ALateCatalogAnswerDoesNotRestoreAnEvictedDataset) {
  start();
  // The first call returns the old list, but only after all others have been answered.
  worker.on("catalog",
            "if mkdir first 2>/dev/null; then until [ -e late ]; do sleep 0.02; done; "
            "printf '%s\\n' '{\"result\": " +
                one_line(kRows) +
                "}'; "
                R"(else echo '{"result": {"datasets": [], "usage": {}}}'; fi)");
  const auto slow = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(slow);
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "first"); }));
  ASSERT_TRUE(ends(stage_all({"models"})));
  EXPECT_EQ(state_of("imagenet"), "absent");
  std::ofstream(worker.folder() / "late") << "now";
  ASSERT_TRUE(ends(*slow));
  EXPECT_EQ(state_of("imagenet"), "absent");
}

// The drive is repaired, and no staging looks at the cache.
TEST_F(UpkeepTest, AnErrorOfTheCatalogDoesNotOutliveItsCause) {
  start();
  const std::string broken =
      R"(echo '{"error": {"kind": "failed", "what": "Input/output error", "hint": ""}}')";
  worker.on("catalog", broken);
  datasets->config_changed();
  ASSERT_TRUE(run_until(context, [&] { return !datasets->list(); }));
  rows(row("imagenet", "ready", days_ago(0)));
  EXPECT_EQ(datasets->upkeep().evict("imagenet").error().kind, Errc::Failed);
  boost::asio::co_spawn(context, datasets->look_again(), boost::asio::detached);
  ASSERT_TRUE(run_until(context, [&] { return datasets->list().has_value(); }));
  EXPECT_EQ(state_of("imagenet"), "ready");
}

// A drive that fails makes each worker wait for a minute.
TEST_F(UpkeepTest, RequestsShareOneLookAtADriveThatDoesNotAnswer) {
  start();
  worker.on("catalog", R"(echo '{"error": {"kind": "failed", "what": "Input/output error", "hint": ""}}')");
  datasets->config_changed();
  ASSERT_TRUE(run_until(context, [&] { return !datasets->list(); }));
  worker.on("catalog", "sleep 8; echo '{\"result\": {\"datasets\": [], \"usage\": {}}}'");
  const int before = worker.calls("catalog");
  int answered = 0;
  const auto began = std::chrono::steady_clock::now();
  const auto ask = [&]() -> boost::asio::awaitable<void> {
    co_await datasets->look_again();
    ++answered;
  };
  for (int i = 0; i < 5; ++i) boost::asio::co_spawn(context, ask(), boost::asio::detached);
  ASSERT_TRUE(run_until(context, [&] { return answered == 5; }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("catalog") > before; }));  // once it has started
  EXPECT_EQ(worker.calls("catalog"), before + 1);
}

TEST_F(UpkeepTest, AnOldAnswerAboutTheCacheIsNotRepeated) {
  timings.old = Duration(0);
  start();
  rows(row("imagenet", "damaged", days_ago(0)));
  boost::asio::co_spawn(context, datasets->look_again(), boost::asio::detached);
  EXPECT_TRUE(run_until(context, [&] { return state_of("imagenet") == "damaged"; }));
}

// As of a drive that hangs: it is done for an hour.
TEST_F(UpkeepTest, ARecoveryInProgressDelaysNoOtherUpkeep) {
  timings.upkeep = Duration(20);
  timings.old = Duration(0);
  worker.on("stage", R"(echo '{"error": {"kind": "refused", "what": "it is empty", "hint": ""}}')");
  worker.on("recover", "until [ $n = 1 ] || [ -e go ]; do sleep 0.02; done; echo '{\"result\": {}}'");
  start();
  ASSERT_TRUE(ends(stage()));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("recover") == 2; }));
  const int looked = worker.calls("catalog");
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("catalog") > looked + 1; }));
  EXPECT_EQ(worker.calls("recover"), 2);
  std::ofstream(worker.folder() / "go") << "now";
}

// Its drive was not mounted at the reload. Until then the list has the copies of the other folder.
TEST_F(UpkeepTest, ACacheThatCouldNotBeOpenedAtItsNewPathIsComparedWithItsCatalogLater) {
  timings.upkeep = Duration(20);
  worker.on("recover", R"([ $n = 1 ] || [ -e mounted ] ||
               { echo '{"error": {"kind": "unavailable", "what": "not mounted", "hint": ""}}'; exit; }
               [ $n = 1 ] || : > compared
               echo '{"progress": {"looked_over": true}}'; echo '{"result": {}}')");
  start();
  settings.cache.path = "/second";
  datasets->config_changed();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("recover") >= 3; }));
  std::ofstream(worker.folder() / "mounted") << "now";
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "compared"); }));
  const int done = worker.calls("recover");
  const auto end = std::chrono::steady_clock::now() + Duration(300);
  run_until(context, [&] { return std::chrono::steady_clock::now() > end; });
  EXPECT_EQ(worker.calls("recover"), done);
}

// The recovery may have been over with its dataset when its copy was published.
TEST_F(UpkeepTest, AStagingThatFailsWhileTheCacheIsOpenedIsFollowedByAnotherRecovery) {
  timings.upkeep = Duration(20);
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "the catalog is full", "hint": ""}}')");
  worker.on("recover",
            R"(echo '{"progress": {"looked_over": true}}'
               until [ $n != 1 ] || [ -e go ]; do sleep 0.02; done; echo '{"result": {}}')");
  begin();
  ASSERT_TRUE(run_until(context, [&] { return datasets->list().has_value(); }));
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(worker.calls("recover"), 1);
  std::ofstream(worker.folder() / "go") << "now";
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("recover") == 2; }));
}

TEST_F(UpkeepTest, OtherLimitsOfTheCacheAreShownAfterAReload) {
  start();
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {"capacity_bytes": 77}}}')");
  datasets->config_changed();
  EXPECT_TRUE(run_until(context, [&] { return state_of("imagenet") == "absent"; }));
}

// The first list of the cache ends after a later one has failed.
TEST_F(UpkeepTest, AListThatFailsAtTheStartIsOnlyAnErrorUntilOneSucceeds) {
  worker.on("catalog",
            "if [ $n = 1 ]; then sleep 0.3; fi; if [ $n = 2 ]; then echo '{\"error\": {\"kind\": "
            "\"failed\", \"what\": \"no\", \"hint\": \"\"}}'; else echo '{\"result\": " +
                one_line(kRows) + "}'; fi");
  begin();
  ASSERT_TRUE(run_until(
      context, [&] { return worker.calls("catalog") >= 2 && datasets->list().error().what == "no"; }));
  ASSERT_TRUE(run_until(context, [&] {
    boost::asio::co_spawn(context, datasets->look_again(), boost::asio::detached);
    return datasets->list().has_value();
  }));
}

}  // namespace
}  // namespace spark::datasets
