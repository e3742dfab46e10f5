#include "tests/unit/daemon/datasets/fixture.hpp"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

namespace spark::datasets {
namespace {

using testing::HasSubstr;

TEST_F(DatasetsTest, StagingReturnsThePathOfTheCopy) {
  start();
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  const auto event = job->final_event();
  EXPECT_EQ(get_string(event, "event"), "done");
  const auto& row = get_array(*get_object(event, "result"), "datasets")->at(0).as_object();
  EXPECT_EQ(get_string(row, "name"), "imagenet");
  EXPECT_EQ(get_string(row, "state"), "ready");
  EXPECT_EQ(get_string(row, "path"), "/c/1");
}

TEST_F(DatasetsTest, TwoConcurrentRequestsShareOneCopy) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto first = stage(), second = stage();
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(second));
  EXPECT_EQ(worker.calls("stage"), 1);
}

TEST_F(DatasetsTest, CancellingOneOfTwoRequestsKeepsTheCopyForTheOther) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto first = stage(), second = stage();
  EXPECT_TRUE(first->cancel());
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(get_string(first->final_event(), "event"), "failed");
  EXPECT_EQ(get_string(second->final_event(), "event"), "done");
}

TEST_F(DatasetsTest, CancellingTheOnlyRequestKillsTheWorker) {
  worker.on("stage", "echo $$ > pid; exec sleep 600");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "pid"); }));
  EXPECT_TRUE(job->cancel());
  EXPECT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
}

TEST_F(DatasetsTest, CancellingAQueuedRequestEndsItAtOnce) {
  config::Dataset waiting = settings.datasets["models"];
  waiting.name = "waiting";
  settings.datasets["waiting"] = waiting;
  worker.on("stage", "exec sleep 600");
  start();
  const auto first = stage_all({"models"});
  ASSERT_TRUE(
      run_until(context, [&] { return state_of("models") == "copying" || state_of("models") == "queued"; }));
  const auto second = stage_all({"waiting"});
  ASSERT_TRUE(run_until(context, [&] { return state_of("waiting") == "queued"; })) << state_of("waiting");
  ASSERT_TRUE(second->cancel());
  EXPECT_TRUE(run_until(context, [&] { return state_of("waiting") == "absent"; })) << state_of("waiting");
  ASSERT_TRUE(first->cancel());
  EXPECT_TRUE(ends(first));
}

TEST_F(DatasetsTest, StagingFromAVolumeThatIsNotReadyIsUnavailableAndCopiesNothing) {
  start();
  source_error = Error{Errc::Unavailable, "volume datasets is waiting", ""};
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  const auto event = job->final_event();
  EXPECT_EQ(get_string(*get_object(event, "error"), "kind"), "unavailable");
  EXPECT_EQ(worker.calls("stage"), 0);
}

TEST_F(DatasetsTest, StagingWaitsForAVolumeOnItsFirstAttempt) {
  timings.settling = Duration{1};
  is_settling = true;
  source_error = Error{Errc::Unavailable, "volume datasets is waiting: starting", ""};
  start();
  const auto job = stage();
  boost::asio::steady_timer arrives(context, std::chrono::milliseconds(50));
  arrives.async_wait([&](const boost::system::error_code&) {
    EXPECT_TRUE(job->is_running());
    is_settling = false;
    source_error.reset();
  });
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1);
  EXPECT_EQ(get_string(job->final_event(), "event"), "done");
}

// As in the API: within the loop, a coroutine that never waits ends before its starter continues.
TEST_F(DatasetsTest, ATaskThatEndsAtOnceIsStillAnswered) {
  start();
  source_error = Error{Errc::Unavailable, "volume datasets is waiting", ""};
  std::shared_ptr<Job> job;
  boost::asio::post(context, [&] { job = stage(); });
  ASSERT_TRUE(run_until(context, [&] { return job && !job->is_running(); }));
  EXPECT_EQ(get_string(*get_object(job->final_event(), "error"), "kind"), "unavailable");
}

TEST_F(DatasetsTest, AFailedStagingDoesNotHideAReadyCopy) {
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(state_of("imagenet"), "ready") << "the generation before is still there";
}

TEST_F(DatasetsTest, ACopyOlderThanItsVolumesPublishedGenerationIsOutdated) {
  const auto listed_with = [&](const std::string& source_generation) {
    std::string rows = one_line(kRows);
    rows.replace(rows.find("\"generation\": 1"), 0, "\"source_generation\": " + source_generation + ", ");
    worker.on("catalog", "printf '%s\\n' '{\"result\": " + rows + "}'");
    start();
    return row_of("imagenet");
  };
  generation = 8;
  const auto old = listed_with("7");
  EXPECT_EQ(get_bool(old, "outdated"), true);
  EXPECT_EQ(get_int(old, "source_generation"), 7);
  EXPECT_EQ(get_int(old, "volume_generation"), 8);
  generation = 7;
  EXPECT_EQ(get_bool(row_of("imagenet"), "outdated"), false);
  generation = 0;
  EXPECT_TRUE(row_of("imagenet")["outdated"].is_null()) << "its volume is away, or publishes nothing";
  EXPECT_TRUE(row_of("models")["outdated"].is_null()) << "it is not here";
}

TEST_F(DatasetsTest, AnUnknownDatasetIsNotFound) {
  start();
  StageRequest request;
  request.datasets = {"imagenot"};
  const auto job = datasets->requests().stage(std::move(request));
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().kind, Errc::NotFound);
}

TEST_F(DatasetsTest, DatasetsAreNotListedBeforeTheirLeasesAreKnown) {
  worker.on("lease", R"(until [ -e known ]; do sleep 0.02; done
      echo '{"result": {"leases": [{"id": "l-1", "dataset": "imagenet", "expires": 4102444800}]}}')");
  begin();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("lease") == 1; }));
  EXPECT_FALSE(run_until(
      context, [&] { return datasets->list().has_value(); }, std::chrono::seconds(1)));
  std::ofstream(worker.folder() / "known") << "now";
  ASSERT_TRUE(run_until(context, [&] { return datasets->list().has_value(); }));
  EXPECT_EQ(get_array(row_of("imagenet"), "leases")->size(), 1u);
  EXPECT_EQ(datasets->upkeep().evict("imagenet").error().kind, Errc::Refused);
}

TEST_F(DatasetsTest, ALeasedDatasetIsNotEvictedUntilItsLeaseIsReleased) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  const auto refused = datasets->upkeep().evict("imagenet");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().what, HasSubstr("a test"));
  const std::string id = datasets->leases().of("imagenet").front()->id;
  EXPECT_TRUE(datasets->leases().release(id));
  EXPECT_FALSE(datasets->leases().release(id));
  EXPECT_TRUE(datasets->upkeep().evict("imagenet"));
}

TEST_F(DatasetsTest, ALeaseHeldByAProcessEndsWithTheProcess) {
  start();
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(ends(stage({}, holder)));
  EXPECT_EQ(datasets->leases().of("imagenet").size(), 1u);
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(run_until(context, [&] { return datasets->leases().of("imagenet").empty(); }));
  ::waitpid(holder, nullptr, 0);
}

// Starts a child with this PID, which must be free.
pid_t start_as(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const auto started = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (started == 0) {
    ::pause();
    ::_exit(0);
  }
  return started;
}

TEST_F(DatasetsTest, ALeaseBelongsToTheProcessThatHadThePidAtTheRequest) {
  if (::geteuid() != 0) GTEST_SKIP() << "starting a process under a given number needs root";
  worker.on("stage", "while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start();
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::pause();
    ::_exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // start times have a resolution of 10 ms
  const auto job = stage({}, holder);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  const pid_t stranger = start_as(holder);
  ASSERT_EQ(stranger, holder) << std::strerror(errno);
  std::ofstream(worker.folder() / "go") << "x";
  ASSERT_TRUE(ends(job));
  EXPECT_TRUE(run_until(
      context, [&] { return datasets->leases().of("imagenet").empty(); }, std::chrono::seconds(2)));
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

TEST_F(DatasetsTest, ATimedLeaseExpires) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::seconds(1))));
  EXPECT_EQ(datasets->leases().of("imagenet").size(), 1u);
  EXPECT_TRUE(run_until(context, [&] { return datasets->leases().of("imagenet").empty(); }));
}

TEST_F(DatasetsTest, ADatasetBeingStagedIsNotEvicted) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto job = stage();
  const auto evicted = datasets->upkeep().evict("imagenet");
  ASSERT_FALSE(evicted);
  EXPECT_EQ(evicted.error().kind, Errc::Refused);
  EXPECT_TRUE(ends(job));
}

TEST_F(DatasetsTest, AnUnreadableCatalogIsReportedAsAnErrorNotAsEmpty) {
  worker.on("catalog", R"(echo '{"error": {"kind": "failed", "what": "catalog is damaged", "hint": ""}}')");
  begin();
  ASSERT_TRUE(run_until(context, [&] {
    const auto list = datasets->list();
    return !list && list.error().what == "catalog is damaged";
  }));
  EXPECT_TRUE(datasets->cache().is_null());
  EXPECT_EQ(datasets->cache_problem(), "catalog is damaged");
}

}  // namespace
}  // namespace spark::datasets
