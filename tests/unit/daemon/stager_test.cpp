#include "daemon/datasets/stager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

constexpr char kRows[] =
    R"({"datasets": [{"name": "imagenet", "state": "ready", "path": "/c/1", "bytes": 5, "files": 1, "generation": 1,
                      "staged_at": "2026-01-01T00:00:00Z", "last_used": "2026-01-01T00:00:00Z"}],
        "usage": {"path": "/c", "capacity_bytes": 10, "used_bytes": 5, "free_bytes": 5}})";
constexpr char kStaged[] =
    R"({"result": {"path": "/c/1", "served_from": "copied", "generation": 1, "bytes": 5, "files": 1}})";

std::string one_line(std::string text) {
  std::erase(text, '\n');
  return text;
}

class StagerTest : public testing::Test {
 protected:
  StagerTest() {
    config::Dataset imagenet;
    imagenet.name = "imagenet";
    imagenet.path = "/data/imagenet";
    settings.datasets["imagenet"] = imagenet;
    worker.on("catalog", "printf '%s\\n' '{\"result\": " + one_line(kRows) + "}'");
    worker.on("lease", R"(cat >> leases.log; echo >> leases.log; echo '{"result": {"leases": []}}')");
    worker.on("stage", std::string("echo '") + kStaged + "'");
    worker.on("evict", R"(echo '{"result": {"dataset": "imagenet", "freed_bytes": 5}}')");
  }
  void start() {
    stager.emplace(
        context.get_executor(), runner, jobs, clock, "/state",
        [this]() -> const config::Config& { return settings; },
        [this](const config::Dataset& dataset) -> Result<Stager::SourcePlace> {
          if (source_error) return tl::unexpected<Error>(*source_error);
          return Stager::SourcePlace{dataset.path, ""};
        });
    boost::asio::co_spawn(context, stager->start(), boost::asio::detached);
    ASSERT_TRUE(run_until(context, [&] { return stager->list().has_value() && worker.calls("lease") == 1; }));
  }
  std::shared_ptr<Job> stage(std::optional<std::chrono::seconds> lease = {}, pid_t pid = 0) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.lease = lease;
    request.holder_pid = pid;
    request.holder = "a test";
    auto job = stager->stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  bool ends(const std::shared_ptr<Job>& job) {
    return run_until(context, [&] { return !job->is_running(); });
  }
  std::string state_of(const std::string& dataset) {
    const auto list = stager->list();
    for (const auto& row : *get_array(*list, "datasets")) {
      if (get_string(row.as_object(), "name") == dataset) return *get_string(row.as_object(), "state");
    }
    return "not listed";
  }

  ScriptedWorker worker;
  boost::asio::io_context context;
  SystemClock clock;
  workers::Runner runner{context.get_executor(), worker.program()};
  Jobs jobs{context.get_executor(), clock};
  config::Config settings;
  std::optional<Error> source_error;
  std::optional<Stager> stager;
};

TEST_F(StagerTest, AStagedDatasetIsAnsweredWithItsPath) {
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

TEST_F(StagerTest, TwoWhoAskAtOnceShareOneCopy) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto first = stage(), second = stage();
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(second));
  EXPECT_EQ(worker.calls("stage"), 1);
}

TEST_F(StagerTest, CancellingOneOfTwoKeepsTheCopyForTheOther) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto first = stage(), second = stage();
  EXPECT_TRUE(first->cancel());
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(get_string(first->final_event(), "event"), "failed");
  EXPECT_EQ(get_string(second->final_event(), "event"), "done");
}

TEST_F(StagerTest, CancellingTheOnlyOneKillsTheWorker) {
  worker.on("stage", "echo $$ > pid; exec sleep 600");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return std::filesystem::exists(worker.folder() / "pid"); }));
  EXPECT_TRUE(job->cancel());
  EXPECT_TRUE(run_until(context, [&] { return stager->stages().empty(); }));
}

TEST_F(StagerTest, AVolumeThatIsNotReadyIsUnavailableAndNothingIsCopied) {
  start();
  source_error = Error{Errc::Unavailable, "volume datasets is waiting", ""};
  const auto job = stage();
  ASSERT_TRUE(ends(job));
  const auto event = job->final_event();
  EXPECT_EQ(get_string(*get_object(event, "error"), "kind"), "unavailable");
  EXPECT_EQ(worker.calls("stage"), 0);
}

// As the API does: from within the loop, where a coroutine that never waits ends before its starter goes on.
TEST_F(StagerTest, ATaskThatEndsAtOnceIsStillAnswered) {
  start();
  source_error = Error{Errc::Unavailable, "volume datasets is waiting", ""};
  std::shared_ptr<Job> job;
  boost::asio::post(context, [&] { job = stage(); });
  ASSERT_TRUE(run_until(context, [&] { return job && !job->is_running(); }));
  EXPECT_EQ(get_string(*get_object(job->final_event(), "error"), "kind"), "unavailable");
}

TEST_F(StagerTest, AFailedStagingIsShownWithItsReasonButNeverHidesAReadyCopy) {
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(state_of("imagenet"), "ready") << "the generation before is still there";
}

TEST_F(StagerTest, AnUnknownDatasetIsNotFound) {
  start();
  StageRequest request;
  request.datasets = {"imagenot"};
  const auto job = stager->stage(std::move(request));
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().kind, Errc::NotFound);
}

TEST_F(StagerTest, ALeasedDatasetIsNotEvictedUntilItsLeaseIsReleased) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::hours(1))));
  const auto refused = stager->evict("imagenet");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().what, HasSubstr("a test"));
  const std::string id = stager->leases().of("imagenet").front()->id;
  EXPECT_TRUE(stager->leases().release(id));
  EXPECT_FALSE(stager->leases().release(id));
  EXPECT_TRUE(stager->evict("imagenet"));
}

TEST_F(StagerTest, ALeaseByProcessEndsWithTheProcess) {
  start();
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(ends(stage({}, holder)));
  EXPECT_EQ(stager->leases().of("imagenet").size(), 1u);
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(run_until(context, [&] { return stager->leases().of("imagenet").empty(); }));
  ::waitpid(holder, nullptr, 0);
}

TEST_F(StagerTest, ALeaseByTimeEndsByItself) {
  start();
  ASSERT_TRUE(ends(stage(std::chrono::seconds(1))));
  EXPECT_EQ(stager->leases().of("imagenet").size(), 1u);
  EXPECT_TRUE(run_until(context, [&] { return stager->leases().of("imagenet").empty(); }));
}

TEST_F(StagerTest, ADatasetThatIsBeingStagedIsNotEvicted) {
  worker.on("stage", std::string("sleep 0.3; echo '") + kStaged + "'");
  start();
  const auto job = stage();
  const auto evicted = stager->evict("imagenet");
  ASSERT_FALSE(evicted);
  EXPECT_EQ(evicted.error().kind, Errc::Refused);
  EXPECT_TRUE(ends(job));
}

TEST_F(StagerTest, ACatalogThatCanNotBeOpenedIsToldAndNotTakenForEmpty) {
  worker.on("catalog", R"(echo '{"error": {"kind": "failed", "what": "catalog is damaged", "hint": ""}}')");
  stager.emplace(
      context.get_executor(), runner, jobs, clock, "/state",
      [this]() -> const config::Config& { return settings; },
      [](const config::Dataset&) -> Result<Stager::SourcePlace> { return Stager::SourcePlace{}; });
  boost::asio::co_spawn(context, stager->start(), boost::asio::detached);
  ASSERT_TRUE(run_until(context, [&] {
    const auto list = stager->list();
    return !list && list.error().what == "catalog is damaged";
  }));
  EXPECT_TRUE(stager->cache().is_null());
}

}  // namespace
}  // namespace spark::datasets
