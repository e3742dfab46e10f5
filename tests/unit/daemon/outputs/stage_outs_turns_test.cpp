// The order of copies to one volume, in virtual time. A user may stop the worker of a copy, which runs with
// that user's rights, or send a hundred copies: other users' copies still reach the volume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/outputs/stage_outs.hpp"
#include "tests/histories/engine/virtual_time.hpp"

namespace spark::outputs {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

// Its copies neither move a byte nor end, unless the test says so.
class HeldRunner final : public workers::Runner {
 public:
  explicit HeldRunner(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  asio::awaitable<Result<json::object>> run(workers::Call call, workers::Cancellation cancellation) override {
    const bool is_held = call.verb == "stage-out" || call.verb == "verify-output" ||
                         (call.verb == "flush-source" && holds_flushes);
    if (!is_held) co_return json::object{{"written", 7}};
    if (cancellation.is_asked()) co_return fail(Errc::Cancelled, "it was cancelled before");
    auto copy = std::make_shared<Copy>(executor_, std::move(call));
    started.push_back(copy->path);
    copies_.push_back(copy);
    // Weak: the copy has what the cancellation belongs to.
    cancellation.set_kill([weak = std::weak_ptr(copy)] {
      if (const auto held = weak.lock()) held->end(fail(Errc::Cancelled, "the worker was cancelled"));
    });
    while (!copy->ended) co_await copy->changed.wait();
    cancellation.set_kill(nullptr);
    std::erase(copies_, copy);
    co_return *copy->ended;
  }
  const std::multiset<std::string>& abandoned() const override { return abandoned_; }
  const workers::WorkerCounts& counts() const override { return counts_; }

  Words running() const {
    Words paths;
    for (const auto& copy : copies_) paths.push_back(copy->path);
    return paths;
  }
  void move(const std::string& path, int bytes) {
    find(path)->call.on_progress({{"phase", "copying"}, {"bytes_done", bytes}});
  }
  void end(const std::string& path,
           Result<json::object> ended = json::object{{"state", "ready"}, {"written", 7}}) {
    find(path)->end(std::move(ended));
  }

  Words started;  // copies, in their order
  bool holds_flushes = false;

 private:
  struct Copy {
    Copy(asio::any_io_executor executor, workers::Call its_call)
        : call(std::move(its_call)),
          path(get_string(call.request, "path").value_or(get_string(call.request, "source").value_or(""))),
          changed(std::move(executor)) {}
    void end(Result<json::object> how) {
      ended = std::move(how);
      changed.notify();
    }

    workers::Call call;
    std::string path;
    std::optional<Result<json::object>> ended;
    Event changed;
  };

  std::shared_ptr<Copy> find(const std::string& path) const {
    const auto found = std::ranges::find_if(copies_, [&](const auto& copy) { return copy->path == path; });
    return found == copies_.end() ? std::make_shared<Copy>(executor_, workers::Call{}) : *found;
  }

  asio::any_io_executor executor_;
  std::vector<std::shared_ptr<Copy>> copies_;
  std::multiset<std::string> abandoned_;
  workers::WorkerCounts counts_;
};

class VolumeTurnsTest : public testing::Test {
 protected:
  VolumeTurnsTest() { time_.attach(context_); }

  std::shared_ptr<Job> send(const std::string& path, uid_t user, const std::string& volume = "checkpoints",
                            Bytes max_rate = 0) {
    StageOutRequest wanted;
    wanted.max_rate = max_rate;
    wanted.source = "/out/" + path;
    wanted.volume = volume;
    wanted.path = path;
    wanted.asker.uid = user;
    auto job = std::make_shared<std::shared_ptr<Job>>();
    auto keep = [](StageOuts& outs, StageOutRequest request,
                   std::shared_ptr<std::shared_ptr<Job>> into) -> asio::awaitable<void> {
      auto sent = co_await outs.send(std::move(request));
      EXPECT_TRUE(sent);
      if (sent) *into = *sent;
    };
    asio::co_spawn(context_, keep(outs_, std::move(wanted), job), asio::detached);
    time_.run_ready();
    return *job;
  }
  // The order in which the copies start, if each ends at once; those that run now included.
  Words order() {
    for (int i = 0; i < 100 && !runner_.running().empty(); ++i) {
      runner_.end(runner_.running().front());
      time_.run_ready();
    }
    return runner_.started;
  }
  static std::string phase(const std::shared_ptr<Job>& job) {
    return get_string(job->progress().value_or(json::object()), "phase").value_or("");
  }
  static std::string reason(const std::shared_ptr<Job>& job) {
    return get_string(job->progress().value_or(json::object()), "reason").value_or("");
  }

  histories::VirtualTime time_{WallTime(24h)};
  asio::io_context context_;
  HeldRunner runner_{context_.get_executor()};
  Jobs jobs_{context_.get_executor(), time_};
  config::Config settings_;
  StageOuts outs_{
      Context{context_.get_executor(), runner_, time_, "/state/stage-outs",
              [this]() -> const config::Config& { return settings_; },
              [](const std::string&) {
                return VolumePlace{"/v", "/v"};
              },
              [](const std::string&) {
                return VolumePlace{"/v", "/v"};
              },
              [] { return false; }, [](const std::string&, const std::string&) { return Words(); }},
      jobs_};
};

TEST_F(VolumeTurnsTest, OneCopyAtATimeIsSentToAVolume) {
  const auto first = send("a", 1000), second = send("b", 1000);
  EXPECT_THAT(runner_.running(), ElementsAre("a"));
  EXPECT_EQ(phase(second), "queued");
  EXPECT_EQ(reason(second), "job " + std::to_string(first->id()) + " is sent to checkpoints first");
  ASSERT_TRUE(first->cancel());
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("b"));
  runner_.end("b");
  time_.run_ready();
  EXPECT_EQ(outs_.totals().cancelled, 1U);
  EXPECT_EQ(outs_.totals().sent, 1U);
}

TEST_F(VolumeTurnsTest, AStoppedCopyLetsOthersGoFirstAndContinuesBehindThem) {
  const auto stopped = send("a", 1000);
  const auto other = send("b", 1001), third = send("c", 1001);
  time_.run_for(59s);
  EXPECT_THAT(runner_.running(), ElementsAre("a")) << "a slow flush is no reason to start again";
  time_.run_for(3s);
  EXPECT_THAT(runner_.running(), ElementsAre("b"));
  EXPECT_EQ(phase(stopped), "queued");
  EXPECT_THAT(reason(stopped), HasSubstr("no byte moved for 1 min"));
  EXPECT_THAT(reason(stopped), HasSubstr("job " + std::to_string(other->id()) + " is sent to checkpoints"));
  runner_.end("b");
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("a")) << "one turn for each user";
  runner_.end("a");
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("c"));
  runner_.end("c");
  time_.run_ready();
  EXPECT_EQ(outs_.totals().sent, 3U);
  EXPECT_EQ(outs_.totals().failed, 0U);
}

TEST_F(VolumeTurnsTest, ACopyThatIsStoppedEachTimeNeverFailsAndHoldsUpNoOther) {
  const auto stopped = send("a", 1000);
  for (int i = 0; i < 20; ++i) {
    const std::string name = "b" + std::to_string(i);
    const auto job = send(name, 1001);
    time_.run_until([&] { return runner_.running() == Words{name}; }, 10min);
    runner_.end(name);
    time_.run_ready();
    EXPECT_FALSE(job->is_running()) << name;
  }
  EXPECT_TRUE(stopped->is_running());
  runner_.end("a");
  time_.run_ready();
  EXPECT_EQ(outs_.totals().sent, 21U);
}

TEST_F(VolumeTurnsTest, AStoppedCopyThatNobodyWaitsForKeepsItsWorker) {
  const auto stopped = send("a", 1000);
  time_.run_for(1h);
  EXPECT_THAT(runner_.started, ElementsAre("a"));
  EXPECT_EQ(phase(stopped), "stalled");
  send("b", 1001);
  time_.run_for(2s);
  EXPECT_THAT(runner_.running(), ElementsAre("b"));
}

TEST_F(VolumeTurnsTest, AMovingCopyKeepsItsTurn) {
  send("a", 1000);
  send("b", 1001);
  for (int i = 1; i < 100; ++i) {
    runner_.move("a", i);
    time_.run_for(50s);
  }
  EXPECT_THAT(runner_.started, ElementsAre("a"));
}

TEST_F(VolumeTurnsTest, ACopyThatPausesBeforeARetryLetsOthersGoFirst) {
  const auto failing = send("a", 1000);
  send("b", 1001);
  runner_.move("a", 1);
  runner_.move("a", 2);  // a user who kills each worker could have turns without end
  runner_.end("a", fail(Errc::Failed, "the worker ended without an answer"));
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("b"));
  EXPECT_THAT(reason(failing), HasSubstr("the worker ended without an answer"));
}

TEST_F(VolumeTurnsTest, AUserWithManyCopiesDelaysAnotherByOneOfThem) {
  for (const char* path : {"a1", "a2", "a3", "a4"}) send(path, 1000);
  for (const char* path : {"b1", "b2"}) send(path, 1001);
  send("c1", 1002);
  EXPECT_THAT(order(), ElementsAre("a1", "b1", "c1", "a2", "b2", "a3", "a4"));
}

TEST_F(VolumeTurnsTest, RootWaitsOnlyForTheCopyThatRunsAndLeavesEverySecondTurnToUsers) {
  for (const char* path : {"a1", "a2", "a3"}) send(path, 1000);
  for (const char* path : {"b1", "b2"}) send(path, 1001);
  for (const char* path : {"r1", "r2", "r3"}) send(path, 0);
  EXPECT_THAT(order(), ElementsAre("a1", "r1", "b1", "r2", "a2", "r3", "b2", "a3"));
}

TEST_F(VolumeTurnsTest, EachVolumeHasItsTurns) {
  send("a", 1000, "first");
  send("b", 1000, "second");
  EXPECT_THAT(runner_.running(), ElementsAre("a", "b"));
}

TEST_F(VolumeTurnsTest, ACancelledCopyLeavesTheQueue) {
  const auto first = send("a", 1000), waiting = send("b", 1001);
  send("c", 1002);
  ASSERT_TRUE(waiting->cancel());
  time_.run_ready();
  EXPECT_FALSE(waiting->is_running());
  ASSERT_TRUE(first->cancel());
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("c"));
}

TEST_F(VolumeTurnsTest, AUsersCopiesWithRatesOfTheirOwnHaveFourWorkers) {
  for (const char* path : {"a1", "a2", "a3", "a4", "a5"}) send(path, 1000, "checkpoints", 1'000'000);
  send("b1", 1001, "checkpoints", 1'000'000);
  send("c1", 1002);
  EXPECT_THAT(runner_.running(), ElementsAre("a1", "a2", "a3", "a4", "b1", "c1"));
  runner_.end("a2");
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("a1", "a3", "a4", "b1", "c1", "a5"));
}

TEST_F(VolumeTurnsTest, AUsersVerificationsHaveFourWorkers) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* path : {"a1", "a2", "a3", "a4", "a5", "a6"}) {
    Asker asker;
    asker.uid = 1000;
    jobs.push_back(*outs_.verify("checkpoints", path, asker));
  }
  ASSERT_TRUE(outs_.verify("checkpoints", "root", {}));
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("a1", "a2", "a3", "a4", "root"));
  EXPECT_THAT(reason(jobs.back()), HasSubstr("goes first"));
  ASSERT_TRUE(jobs[4]->cancel());
  runner_.end("a1");
  time_.run_ready();
  EXPECT_FALSE(jobs[4]->is_running());
  EXPECT_THAT(runner_.running(), ElementsAre("a2", "a3", "a4", "root", "a6"));
}

TEST_F(VolumeTurnsTest, AUsersFlushesHaveFourWorkersAndRootWaitsForNone) {
  runner_.holds_flushes = true;
  for (const char* path : {"a1", "a2", "a3", "a4", "a5", "a6"}) send(path, 1000);
  send("root", 0);
  EXPECT_THAT(runner_.running(), ElementsAre("/out/a1", "/out/a2", "/out/a3", "/out/a4", "/out/root"));
  runner_.end("/out/a1");
  time_.run_ready();
  EXPECT_THAT(runner_.running(), ElementsAre("/out/a2", "/out/a3", "/out/a4", "/out/root", "a1", "/out/a5"));
}

// The names of another user's next checkpoints are easy to guess.
TEST_F(VolumeTurnsTest, AUsersCopyReservesNoNameOnTheVolumeForThatUser) {
  send("run/step-1", 1000);
  const auto job = send("run/step-1", 1001);
  ASSERT_NE(job, nullptr);
  runner_.end("run/step-1", fail(Errc::Denied, "run is another user's"));
  time_.run_ready();
  EXPECT_THAT(runner_.started, ElementsAre("run/step-1", "run/step-1"));
  runner_.end("run/step-1");
  time_.run_ready();
  EXPECT_EQ(outs_.totals().sent, 1U);
}

}  // namespace
}  // namespace spark::outputs
