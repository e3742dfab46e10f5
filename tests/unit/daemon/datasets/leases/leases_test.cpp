// Leases through requests: granted with a staging, ended by whichever ends first, and restored after a
// restart.
#include "daemon/datasets/leases/leases.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

std::int64_t in_seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

class LeasesTest : public DatasetsTest {
 protected:
  std::shared_ptr<Job> stage_in_group() {
    group = worker.folder() / "job.scope";
    std::filesystem::create_directories(group);
    populate("1");
    struct stat info {};
    EXPECT_EQ(::stat(group.c_str(), &info), 0);
    StageRequest request;
    request.datasets = {"imagenet"};
    request.cgroup = {group, info.st_ino};
    request.asker.holder = "slurm job 12";
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job);
    EXPECT_TRUE(ends(*job));
    return *job;
  }
  void populate(const char* populated) {
    std::ofstream(group / "cgroup.events") << "populated " << populated << "\n";
  }
  std::size_t ended_holds() {
    const std::string log = text_of("leases.log"), removed = R"(["request-)";
    std::size_t count = 0;
    for (auto at = log.find(removed); at != std::string::npos; at = log.find(removed, at + 1)) ++count;
    return count;
  }
  std::size_t held() { return datasets->leases().of("imagenet").size(); }
  std::filesystem::path group;
};

TEST_F(LeasesTest, ALeaseByControlGroupEndsWhenTheGroupIsEmpty) {
  start();
  stage_in_group();
  EXPECT_EQ(held(), 1u);
  const json::object shown = get_array(row_of("imagenet"), "leases")->at(0).as_object();
  EXPECT_EQ(get_string(shown, "holder"), "slurm job 12");
  EXPECT_EQ(get_string(shown, "cgroup"), group.native());
  EXPECT_TRUE(shown.at("expires").is_null());
  const std::string removed = "\"ids\":[\"" + get_string(shown, "id").value_or("?") + "\"]";
  populate("0");
  EXPECT_TRUE(run_until(context, [&] { return held() == 0; }));
  EXPECT_TRUE(run_until(context, [&] { return text_of("leases.log").find(removed) != std::string::npos; }));
}

TEST_F(LeasesTest, ALeaseByControlGroupEndsWhenTheGroupIsRemoved) {
  start();
  stage_in_group();
  std::filesystem::remove_all(group);
  EXPECT_TRUE(run_until(context, [&] { return held() == 0; }));
}

TEST_F(LeasesTest, ALeaseOfAnExitedProcessEndsAtOnce) {
  const pid_t holder = ::fork();
  if (holder == 0) ::_exit(0);
  ::waitpid(holder, nullptr, 0);
  start();
  ASSERT_TRUE(ends(stage({}, holder)));
  EXPECT_TRUE(run_until(context, [&] { return held() == 0; }));
}

TEST_F(LeasesTest, ALeaseByProcessAndTimeEndsWithTheFirstOfTheTwo) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::seconds(1), ::getpid())));
  EXPECT_THAT(text_of("leases.log"), testing::HasSubstr("\"expires\":")) << "it was not held at all";
  EXPECT_TRUE(run_until(context, [&] { return held() == 0; }));
}

TEST_F(LeasesTest, LeasesSurviveARestartUnlessTheyExpiredOrTheirHolderIsGone) {
  const auto pid = std::to_string(::getpid());
  const auto born = std::to_string(*staging::process_start_time(::getpid()));
  const auto lease = [](const std::string& id, const std::string& more) {
    return R"({"id": ")" + id + R"(", "dataset": "imagenet", "generation": 1, "holder": "h", )" + more + "}";
  };
  const std::string later = std::to_string(in_seconds(clock.wall()) + 1000);
  const std::string leases = lease("runs", "\"pid\": " + pid + ", \"pid_start_time\": " + born) + ", " +
                             lease("other-process", "\"pid\": " + pid + ", \"pid_start_time\": 1") + ", " +
                             lease("over", "\"expires\": 1000") + ", " +
                             lease("timed", "\"expires\": " + later) + ", " +
                             lease("no-group", R"("cgroup": "/nonexistent", "cgroup_id": 5)");
  worker.on("lease", note_request("leases.log") + "echo '{\"result\": {\"leases\": [" + leases + "]}}'");
  start();
  ASSERT_TRUE(run_until(context, [&] { return held() == 2; }));
  std::vector<std::string> ids;
  for (const Lease* one : datasets->leases().of("imagenet")) ids.push_back(one->id);
  EXPECT_THAT(ids, testing::ElementsAre("runs", "timed"));
}

// As of a job that names all of them.
TEST_F(LeasesTest, ManyLeasesAreWrittenByFewWorkers) {
  start();
  for (int i = 0; i < 60; ++i) {
    Lease lease;
    lease.id = std::to_string(i);
    datasets->leases().hold(std::move(lease));
  }
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("lease") >= 60; }));
  EXPECT_LE(runner.counts().started, 50u);
}

TEST_F(LeasesTest, StagingFailsIfItsGenerationIsGoneBeforeItIsLeased) {
  worker.on("lease", R"(if grep -q '"add"'; then
      echo '{"error": {"kind": "not_found", "what": "it is not in the cache", "hint": ""}}'
    else echo '{"result": {"leases": []}}'; fi)");
  start();
  const auto job = stage(std::chrono::hours(1));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "not_found");
  EXPECT_EQ(held(), 0u);
}

// As when its worker was killed: a restarted daemon has only what was written.
TEST_F(LeasesTest, ALeaseThatCouldNotBeWrittenIsWrittenAgain) {
  worker.on("lease",
            note_request("leases.log") +
                R"(case $request in *'"op":"add"'*) [ -e killed ] || { : > killed; kill -9 $$; };; esac
                         echo '{"result": {"leases": []}}')");
  start();
  const auto job = stage(std::chrono::hours(1));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  const std::string asked = text_of("leases.log");
  EXPECT_NE(asked.find(R"("op":"add")"), asked.rfind(R"("op":"add")"));
}

// A staging that began before the lease was granted learns of it only there.
TEST_F(LeasesTest, ACopyStaysHeldForItsRequestUntilItsLeaseIsInTheCatalog) {
  worker.on("lease",
            note_request("leases.log") +
                R"(case $request in *'"op":"add"'*) echo '{"error": {"kind": "failed", "what": "locked",
                            "hint": ""}}';; *) echo '{"result": {"leases": []}}';; esac)");
  start();
  const auto job = stage(std::chrono::hours(1));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  ASSERT_EQ(held(), 1U);
  const auto is_hold_ended = [&] { return text_of("leases.log").find(R"(["request-)") != std::string::npos; };
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("lease") >= 4; }));  // the list, and three tries
  EXPECT_FALSE(is_hold_ended());
  ASSERT_TRUE(datasets->leases().release(datasets->leases().of("imagenet").front()->id));
  EXPECT_TRUE(run_until(context, is_hold_ended));
}

// As with a full state folder.
TEST_F(LeasesTest, AnUnwrittenLeaseKeepsNoHoldOfAnotherDataset) {
  worker.on(
      "lease",
      note_request("leases.log") +
          R"(case $request in *'"dataset":"imagenet"'*'"op":"add"'*) echo '{"error": {"kind": "no_space",
                            "what": "full", "hint": ""}}';; *) echo '{"result": {"leases": []}}';; esac)");
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  StageRequest request;
  request.datasets = {"models"};
  request.lease = std::chrono::hours(1);
  ASSERT_TRUE(ends(*datasets->requests().stage(std::move(request))));
  EXPECT_TRUE(run_until(context, [&] { return ended_holds() == 1; }));
  ASSERT_TRUE(datasets->leases().release(datasets->leases().of("imagenet").front()->id));
  EXPECT_TRUE(run_until(context, [&] { return ended_holds() == 2; }));
}

// As with a full state folder. The worker that evicts reads the leases of the catalog.
TEST_F(LeasesTest, AReleaseThatCouldNotBeWrittenIsWrittenBeforeAnEviction) {
  const std::string full = R"(echo '{"error": {"kind": "no_space", "what": "full", "hint": ""}}')";
  worker.on("lease", note_request("calls.log") +
                         "case $request in *'\"op\":\"remove\"'*) [ -e asked ] || { : > asked; " + full +
                         "; exit; };; esac; echo '{\"result\": {\"leases\": []}}'");
  worker.on("evict", note_request("calls.log") + "echo '{\"result\": {\"freed_bytes\": 5}}'");
  start();
  Lease lease;
  lease.id = "1f";
  lease.dataset = "imagenet";
  datasets->leases().hold(std::move(lease));
  ASSERT_TRUE(datasets->leases().release("1f"));
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "asked"); }));
  const auto job = datasets->upkeep().evict("imagenet", {});
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  const std::string calls = text_of("calls.log"), removal = R"("ids":["1f"])";
  const auto second = calls.find(removal, calls.find(removal) + 1);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(second, calls.rfind(R"("dataset":"imagenet")"));
}

// As with a full state folder, while the cache's drive is not mounted: the leases are read again and again.
TEST_F(LeasesTest, AReleaseThatIsNotWrittenYetHoldsWhenTheLeasesAreReadAgain) {
  const std::string later = std::to_string(in_seconds(clock.wall()) + 1000);
  const std::string full = R"(echo '{"error": {"kind": "no_space", "what": "full", "hint": ""}}')";
  const std::string lease =
      R"({"id": "1f", "dataset": "imagenet", "generation": 1, "holder": "h", "expires": )" + later + "}";
  worker.on("lease", note_request("calls.log") + "case $request in *'\"op\":\"remove\"'*) " + full +
                         ";; *) echo '{\"result\": {\"leases\": [" + lease + "]}}';; esac");
  worker.on("recover", R"(echo '{"error": {"kind": "unavailable", "what": "not mounted", "hint": ""}}')");
  timings.recover_again = Duration(50);
  begin();
  ASSERT_TRUE(run_until(context, [&] { return held() == 1; }));
  ASSERT_TRUE(datasets->leases().release("1f"));
  const int before = worker.calls("recover");
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("recover") >= before + 2; }));
  EXPECT_EQ(held(), 0U);
}

// Those that the catalog could not take are beside the copies, in the folder that was the cache before.
TEST_F(LeasesTest, AllAreWrittenOnceTheCacheIsInAnotherFolder) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  settings.cache.path = "/second";
  datasets->config_changed();
  const auto is_written_there = [&] {
    std::istringstream calls(text_of("leases.log"));
    for (std::string call; std::getline(calls, call);)
      if (call.find("/second") != std::string::npos && call.find(R"("op":"add")") != std::string::npos)
        return true;
    return false;
  };
  EXPECT_TRUE(run_until(context, is_written_there));
}

// There is nothing left to keep.
TEST_F(LeasesTest, ALeaseOnACopyThatIsGoneKeepsNoHold) {
  worker.on("lease", note_request("leases.log") +
                         R"(case $request in *'"op":"add"'*) kind=failed; [ -e second ] && kind=not_found
                       [ -e first ] && : > second; : > first
                       echo '{"error": {"kind": "'$kind'", "what": "locked", "hint": ""}}';;
                   *) echo '{"result": {"leases": []}}';; esac)");
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  EXPECT_TRUE(run_until(context, [&] { return ended_holds() == 1; }));
}

TEST_F(LeasesTest, AFailedRequestReleasesItsLeases) {
  worker.on("stage", std::string("if grep -q '\"models\",\"path\"'; then ") +
                         R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')" +
                         "; else echo '" + kStaged + "'; fi");
  start();
  StageRequest request;
  request.datasets = {"imagenet", "models"};
  request.lease = std::chrono::hours(1);
  const auto job = *datasets->requests().stage(std::move(request));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "no_space");
  EXPECT_TRUE(run_until(context, [&] { return held() == 0; }));
}

TEST_F(LeasesTest, LeasesArePassedToStagingsAndNamedByARefusedEviction) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  ASSERT_TRUE(ends(stage(std::chrono::hours(2))));
  ASSERT_TRUE(ends(stage_all({"models"})));
  EXPECT_THAT(text_of("stages.log"), HasSubstr(R"({"dataset":"imagenet","generation":1})"));
  EXPECT_THAT(text_of("stages.log"), HasSubstr(R"({"dataset":"models","generation":0})"));
  const auto refused = datasets->upkeep().evict("imagenet");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  for (const Lease* lease : datasets->leases().of("imagenet")) {
    EXPECT_THAT(refused.error().what, HasSubstr("a test (lease " + lease->id + ")"));
  }
}

}  // namespace
}  // namespace spark::datasets
