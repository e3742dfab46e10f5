// A new configuration for an existing volume.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "daemon/config/parse.hpp"
#include "daemon/config/plan.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using std::chrono::seconds;
using testing::HasSubstr;

class VolumeReload : public VolumeTest {
 protected:
  template <class Value>
  Value wait(boost::asio::awaitable<Value> asked) {
    return await(context, std::move(asked)).value_or(Value(fail(Errc::Failed, "it never ended")));
  }
};

TEST_F(VolumeReload, TimersAreSetOnTheExistingController) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const std::string controller = volume->status().paths.at(0).controller;
  target->options.fast_fail = seconds(10);
  EXPECT_TRUE(wait(volume->set_live(settings, target)));
  EXPECT_EQ(world.timers.at(controller).fast_fail, seconds(10));
  EXPECT_EQ(volume->target()->options.fast_fail, seconds(10));
  EXPECT_EQ(world.count("connect"), 1);
  EXPECT_EQ(world.count("mount ro"), 1);
  EXPECT_EQ(volume->status().state, State::Ready);
}

TEST_F(VolumeReload, TimersRejectedByTheKernelAreAnError) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.timers_error = Error{Errc::Unsupported, "fast_fail is off, not 10", ""};
  target->options.fast_fail = seconds(10);
  const auto set = wait(volume->set_live(settings, target));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("fast_fail is off, not 10"));
}

TEST_F(VolumeReload, RejectedTimersStayInTheNextPlan) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  config::Config wanted;
  wanted.volumes = {settings};
  wanted.targets["rose"] = *target;
  wanted.targets["rose"].options.fast_fail = seconds(10);
  const auto plan = [&] {
    config::InForce now{settings.name, config::to_json(volume->settings()),
                        config::to_json(*volume->target()), "ext4", kUuid};
    return config::plan_volumes({std::move(now)}, wanted).at(0);
  };
  world.timers_error = Error{Errc::Unsupported, "fast_fail is off, not 10", ""};
  ASSERT_FALSE(wait(volume->set_live(settings, wanted.targets["rose"])));
  EXPECT_EQ(plan().action, config::Action::SetLive);
  EXPECT_THAT(plan().changes, testing::ElementsAre(HasSubstr("fast_fail")));
  world.timers_error.reset();
  EXPECT_TRUE(wait(volume->set_live(settings, wanted.targets["rose"])));
  EXPECT_EQ(plan().action, config::Action::Nothing);
}

TEST_F(VolumeReload, ADeadMountHasUsersOnlyIfItIsHeldForThem) {
  world.open_files = "python3 (pid 7, open file)";
  settings.on_loss = config::OnLoss::Hold;
  world.offers.clear();
  start();
  world.offer(kNqn, "10.0.0.5", 4420);
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "in use", ""};
  world.lose_device();
  ASSERT_TRUE(becomes(State::Lost));
  EXPECT_EQ(wait(volume->users()).value(), world.open_files);
  settings.on_loss = config::OnLoss::Remount;
  EXPECT_TRUE(wait(volume->set_live(settings, target)));
  world.offers.clear();
  EXPECT_EQ(wait(volume->users()).value(), "");
}

TEST_F(VolumeReload, AConnectionThatEndsWhileTimersAreSetIsNotAnError) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.timers_error = Error{Errc::NotFound, "gone", ""};
  EXPECT_TRUE(wait(volume->set_live(settings, target)));
}

// Otherwise the connection would keep the old timers until it ends.
TEST_F(VolumeReload, AConnectInProgressGetsTheNewTimersWhenItEnds) {
  world.while_connecting = [this] {
    target->options.fast_fail = seconds(10);
    boost::asio::co_spawn(context, volume->set_live(settings, target), boost::asio::detached);
    world.while_connecting = [] {};
  };
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const std::string controller = volume->status().paths.at(0).controller;
  ASSERT_TRUE(run_until([&] { return world.timers.contains(controller); }));
  EXPECT_EQ(world.timers.at(controller).fast_fail, seconds(10));
}

TEST_F(VolumeReload, UsersAreQueriedOnlyWhileTheVolumeIsMounted) {
  world.open_files = "python3 (pid 9, open file)";
  world.target_up = false;
  start();
  ASSERT_TRUE(becomes(State::Waiting));
  EXPECT_EQ(wait(volume->users()).value(), "");
  world.target_up = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(wait(volume->users()).value(), "python3 (pid 9, open file)");
}

TEST_F(VolumeReload, ARemountKeepsTheConnection) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(wait(volume->requests().ask_down(OnDown::KeepConnection)));
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST_F(VolumeReload, AnUpRequestEndsThePendingDownRequest) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  std::optional<Result<>> answer;
  auto keep = [](std::shared_ptr<Volume> its, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await its->requests().ask_down();
  };
  boost::asio::co_spawn(context, keep(volume, answer), boost::asio::detached);
  context.restart();
  context.poll_one();
  volume->requests().ask_up();
  EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
}

TEST_F(VolumeReload, APendingStepIsAmongTheWarnings) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  volume->note_pending("remount is left to do");
  const auto shown = to_json(settings, volume->status());
  EXPECT_EQ(json::serialize(shown.at("warnings")), R"(["remount is left to do"])");
  volume->note_pending("");
  EXPECT_EQ(json::serialize(to_json(settings, volume->status()).at("warnings")), "[]");
}

}  // namespace
}  // namespace spark::volumes
