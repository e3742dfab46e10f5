#include "daemon/sim/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <csignal>

#include "tests/support/run_on.hpp"

namespace spark::sim {
namespace {

using testing::ElementsAre;

class TimelineTest : public testing::Test {
 protected:
  void start(std::vector<Event> events, bool repeats = false) {
    Scenario scenario;
    scenario.events = std::move(events);
    scenario.repeats = repeats;
    timeline.emplace(context.get_executor(), std::move(scenario),
                     [this](const Event& event) { happened.push_back(event.sentence); });
    auto end = [this](const std::exception_ptr&) { has_ended = true; };
    boost::asio::co_spawn(context, timeline->run(), end);
  }
  static Event event(std::optional<Duration> after, const std::string& sentence) {
    return {after, TargetChange{}, sentence};
  }

  boost::asio::io_context context{1};
  std::optional<Timeline> timeline;
  std::vector<std::string> happened;
  bool has_ended = false;
};

TEST_F(TimelineTest, EventsHappenInOrderAndThenTheTimelineEnds) {
  start({event(Duration(2), "a"), event(Duration(0), "b"), event(Duration(1), "c")});
  EXPECT_TRUE(run_until(context, [&] { return has_ended; }));
  EXPECT_THAT(happened, ElementsAre("a", "b", "c"));
}

TEST_F(TimelineTest, EachSignalRunsOneWaitingStep) {
  start({event(std::nullopt, "a"), event(std::nullopt, "b"), event(std::nullopt, "c")});
  std::raise(SIGUSR1);
  EXPECT_TRUE(run_until(context, [&] { return happened.size() == 1; }));
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_THAT(happened, ElementsAre("a"));
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  EXPECT_TRUE(run_until(context, [&] { return has_ended; }));
  EXPECT_THAT(happened, ElementsAre("a", "b", "c"));
}

TEST_F(TimelineTest, ARepeatedTimelineRestartsUntilItIsStopped) {
  start({event(Duration(1), "a"), event(Duration(1), "b")}, true);
  EXPECT_TRUE(run_until(context, [&] { return happened.size() >= 5; }));
  EXPECT_EQ(happened[4], "a");
  timeline->stop();
  EXPECT_TRUE(run_until(context, [&] { return has_ended; }));
}

TEST_F(TimelineTest, ARepeatedTimelineWithoutEventsEnds) {
  start({}, true);
  EXPECT_TRUE(run_until(context, [&] { return has_ended; }));
}

}  // namespace
}  // namespace spark::sim
