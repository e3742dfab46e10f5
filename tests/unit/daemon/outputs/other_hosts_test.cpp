#include "daemon/outputs/watch/other_hosts.hpp"

#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

struct SetClock final : Clock {
  WallTime wall() const override { return {}; }
  SteadyTime steady() const override { return now; }
  SteadyTime now{seconds(1'000)};
};

class OtherHostsTest : public WatchedOutputTest {
 protected:
  bool is_awaited(bool may_publish, const OtherHosts::Awaited& awaited = {"step-3"}) {
    return others.is_awaited(awaited, may_publish, time.now);
  }

  SetClock time;
  Context shared{context.get_executor(),
                 runner,
                 time,
                 "/state",
                 {},
                 [this](const std::string&) { return place(); },
                 {},
                 {},
                 {}};
  OtherHosts others{shared, settings.outputs["run7"]};
};

TEST_F(OtherHostsTest, ACheckpointIsStuckOnceNothingOfItHasChangedForSomeTime) {
  std::vector<BegunCheckpoint> begun{{"step-2", 20, true, 7}};
  const auto is_stuck = [&] {
    others.mark_stuck(begun);
    return begun.front().is_stuck;
  };
  EXPECT_FALSE(is_stuck());
  time.now += seconds(30);
  EXPECT_TRUE(is_stuck());
  EXPECT_TRUE(is_stuck());
  ++begun.front().others_progress;
  EXPECT_FALSE(is_stuck());
}

// They may have come back just now, after an hour.
TEST_F(OtherHostsTest, SilentOnesAreAwaitedForThirtySecondsFromTheFirstQuestion) {
  EXPECT_TRUE(is_awaited(false));
  for (int second = 0; second < 29; ++second, time.now += seconds(1)) EXPECT_TRUE(is_awaited(false));
  time.now += seconds(1);
  for (int caller = 0; caller < 3; ++caller)
    EXPECT_FALSE(is_awaited(false)) << "by all that asked meanwhile: none begins anew";
  time.now += seconds(30);
  EXPECT_TRUE(is_awaited(false)) << "a later caller";
  for (int second = 0; second < 60; ++second, time.now += seconds(1))
    EXPECT_TRUE(is_awaited(true)) << "a lower one may still be published";
}

// A slow host sends one after the other: only once the lower one is published, the higher one begins.
TEST_F(OtherHostsTest, OnesThatSentALowerCheckpointAreAwaitedForThirtySecondsMore) {
  OtherHosts::Awaited awaited{"step-3"};
  for (int second = 0; second < 60; ++second, time.now += seconds(1), ++awaited.others_progress)
    EXPECT_TRUE(is_awaited(true, awaited));
  awaited.others_progress = 0;
  for (int second = 0; second < 30; ++second, time.now += seconds(1)) EXPECT_TRUE(is_awaited(false, awaited));
  EXPECT_FALSE(is_awaited(false, awaited));
}

TEST_F(OtherHostsTest, TheyAreAwaitedForNinetySecondsSinceTheLastChangeAtMost) {
  OtherHosts::Awaited awaited{"step-3", true};
  const auto after = [&](int passed) {
    bool is_still = true;
    for (int second = 0; is_still && second < passed; ++second, time.now += seconds(1))
      is_still = is_awaited(true, awaited);
    return is_still;
  };
  EXPECT_TRUE(after(300)) << "this host sends";
  awaited.is_sending = false;
  EXPECT_TRUE(after(89));
  ++awaited.others_progress;
  EXPECT_TRUE(after(89)) << "another one sent";
  EXPECT_FALSE(after(10)) << "a sending fails again and again";
}

TEST_F(OtherHostsTest, TheShardsThatOthersWaitForAreAnnouncedUntilTheyAreSent) {
  worker.on("announce-shards", note_request("signs.log") + R"(echo '{"result": {}}')");
  shared.timings.sign = Duration(10);
  bool has_ended = false;
  const auto announce = [&]() -> asio::awaitable<void> {
    co_await others.announce();
    has_ended = true;
  };
  asio::co_spawn(context, announce, asio::detached);
  others.plan({"step-2"}, 1000);
  EXPECT_TRUE(calls("announce-shards", 2));
  EXPECT_THAT(text_of("signs.log"), HasSubstr(R"("path":"run7","uid":1000,"checkpoints":["step-2"])"));
  others.plan({}, 1000);
  run_until(context, [&] { return runner.counts().running == 0; });
  const int told = worker.calls("announce-shards");
  time.now += seconds(1);
  others.stop();
  EXPECT_TRUE(run_until(context, [&] { return has_ended; }));
  EXPECT_EQ(worker.calls("announce-shards"), told);
}

// Its sending waits for its turn behind another one to the same volume.
TEST_F(WatchedOutputTest, ABusyHostTellsTheOthersThatItWillSendItsShard) {
  worker.on("announce-shards", note_request("signs.log") + R"(echo '{"result": {}}')");
  worker.on(
      "list-published",
      R"(echo '{"result": {"copies": [], "begun": [{"name": "step-2", "own_written": 0, "has_others": true, "others_progress": 1}]}}')");
  worker.on("stage-out", R"([ $n = 1 ] && sleep 60; echo '{"result": {"state": "ready"}}')");
  StageOutRequest before;
  before.source = "/out/big";
  before.volume = "checkpoints";
  before.path = "big";
  const auto first = await(context, outs->send(before));
  ASSERT_TRUE(first && *first);
  settings.outputs["run7"].nodes = 2;
  watches->apply(settings);
  EXPECT_TRUE(calls("announce-shards", 2));
  EXPECT_THAT(text_of("signs.log"), HasSubstr(R"("checkpoints":["step-2"])"));
  EXPECT_TRUE((**first)->cancel().has_value());
  EXPECT_TRUE(calls("stage-out", 2));
}

}  // namespace
}  // namespace spark::outputs
