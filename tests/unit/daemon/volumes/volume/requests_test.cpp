// Taking a volume down.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "daemon/log.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

class DownTest : public VolumeTest {
 protected:
  Result<> ask_down(OnDown on_down = OnDown::Disconnect) {
    std::optional<Result<>> answer;
    auto ask = [](Volume& asked, OnDown how, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.requests().keep_down("alice", how);
    };
    boost::asio::co_spawn(context, ask(*volume, on_down, answer), boost::asio::detached);
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
  Result<> ask_up() {
    return await(context, volume->requests().keep_up()).value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
  void restart() {
    volume->stop();
    world.touched.clear();
    start();
  }
};

TEST_F(DownTest, UnmountsThenDisconnectsAndStaysDownUntilBroughtUp) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.touched.clear();
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(volume->status().state, State::Down);
  std::erase(world.touched, "probe");  // a periodic probe may have run
  EXPECT_THAT(world.touched, ElementsAre("record down", "unmount", "disconnect", "record released"));
  EXPECT_TRUE(ask_down()) << "asking again finds it down";
  EXPECT_TRUE(ask_up());
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, AVolumeTakenDownStaysDownAcrossARestart) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  const auto shown = to_json(settings, volume->status()).at("down").as_object();
  EXPECT_EQ(shown.at("by"), "alice");
  restart();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(world.touched.empty());
  EXPECT_EQ(to_json(settings, volume->status()).at("down").as_object(), shown);
  EXPECT_TRUE(ask_down()) << "once more, by another";
  EXPECT_EQ(to_json(settings, volume->status()).at("down").as_object(), shown);
  EXPECT_TRUE(ask_up());
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(to_json(settings, volume->status()).at("down").is_null());
  restart();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, ARequestToAVolumeThatAReloadHasReplacedFailsAndRecordsNothing) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  volume->stop("was replaced by a reload of the configuration");
  world.touched.clear();
  const auto up = ask_up();
  EXPECT_EQ(up.error().kind, Errc::Unavailable);
  EXPECT_THAT(up.error().what, HasSubstr("was replaced by a reload of the configuration"));
  EXPECT_TRUE(world.touched.empty());
}

TEST_F(DownTest, AnUpOfAVolumeThatIsUpFailsOnceAReloadHasReplacedIt) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  volume->stop("was replaced by a reload of the configuration");
  EXPECT_EQ(ask_up().error().kind, Errc::Unavailable);
}

TEST_F(DownTest, AnUnfencedVolumeTakenDownIsNotMountedAfterARestart) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  restart();
  ASSERT_TRUE(becomes(State::Down));
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world.count("mount rw"), 0);
}

TEST_F(DownTest, ADownThatCannotBeRecordedIsCarriedOutWithAWarningUntilItIsRecorded) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.intent_error = Error{Errc::NoSpace, "writing datasets.intent.json: no space left", "free some"};
  ASSERT_TRUE(ask_down());
  EXPECT_EQ(volume->status().state, State::Down);
  ASSERT_EQ(all_warnings(volume->status()).size(), 1U);
  EXPECT_THAT(all_warnings(volume->status())[0], HasSubstr("a restart of the daemon would bring it up"));
  EXPECT_THAT(all_warnings(volume->status())[0], HasSubstr("no space left"));
  restart();
  EXPECT_TRUE(becomes(State::Ready)) << "as the warning said";
}

TEST_F(DownTest, ARefusedDownThatCouldNotBeRecordedLeavesNoWarning) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.intent_error = Error{Errc::NoSpace, "no space left", ""};
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  EXPECT_FALSE(ask_down());
  EXPECT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(all_warnings(volume->status()).empty());
}

TEST_F(DownTest, ARefusedDownWhoseEndCannotBeRecordedWarnsUntilAnUpRecordsIt) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  boost::asio::co_spawn(context, volume->requests().keep_down("alice"), boost::asio::detached);
  context.restart();
  while (world.intent->up) context.run_one();
  world.intent_error = Error{Errc::Failed, "the state folder is read-only", ""};
  ASSERT_TRUE(run_until([&] { return !all_warnings(volume->status()).empty(); }));
  EXPECT_THAT(all_warnings(volume->status())[0], HasSubstr("a restart of the daemon would take it down"));
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(ask_up()) << "it is still recorded as down";
  world.intent_error.reset();
  EXPECT_TRUE(ask_up());
  EXPECT_TRUE(world.intent->up);
  EXPECT_TRUE(all_warnings(volume->status()).empty());
}

TEST_F(DownTest, AnUpThatCannotBeRecordedLeavesTheVolumeDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  world.intent_error = Error{Errc::NoSpace, "no space left", ""};
  EXPECT_FALSE(ask_up());
  EXPECT_EQ(volume->status().state, State::Down);
}

TEST_F(DownTest, ARefusedDownDoesNotTakeEffectAfterARestart) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  EXPECT_FALSE(ask_down());
  restart();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, ARefusedDownIsNeverShownAsDown) {
  world.intent_takes = Duration(20);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "in use", ""};
  seen.clear();
  EXPECT_FALSE(ask_down());
  EXPECT_THAT(seen, testing::Not(testing::Contains(testing::AnyOf(State::Down, State::Refused))));
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, AMountMadeAfterADownIsLeftAloneUntilAnOperatorDecides) {
  world.intent = Intent{false, clock.wall(), "alice", true};
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("was taken down by alice at 20"));
  EXPECT_TRUE(world.touched.empty());
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(volume->status().state, State::Down);
}

TEST_F(DownTest, AConnectionMadeAfterADownIsLeftAlone) {
  world.intent = Intent{false, clock.wall(), "alice", true};
  world.plug_in(kNqn);
  start();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(ask_down()) << "it is down";
  EXPECT_TRUE(world.touched.empty());
  EXPECT_EQ(world.controllers.size(), 1u);
}

TEST_F(DownTest, AnUnreadableIntentChangesNothingUntilAnOperatorDecides) {
  world.intent = fail(Error{Errc::Failed, "datasets.intent.json: input/output error", ""});
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("input/output error"));
  EXPECT_TRUE(world.touched.empty());
  EXPECT_TRUE(ask_up());
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, TakeBringsUpAVolumeTakenDown) {
  settings.access = config::Access::Exclusive;
  world.superblock.has_mmp = true;
  world.intent = Intent{false, clock.wall(), "alice"};
  start();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(await(context, volume->requests().take()).value_or(fail(Errc::Failed, "no answer")));
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(world.intent->up);
}

TEST_F(DownTest, AVolumeInUseStaysUpAndItsUsersAreNamed) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("python3"));
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, ADeadMountHeldForItsUsersIsNotDetached) {
  settings.on_loss = config::OnLoss::Hold;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  world.offers.clear();
  world.lose_device();
  ASSERT_TRUE(becomes(State::Lost));
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("python3"));
  EXPECT_EQ(world.count("detach"), 0);
}

TEST_F(DownTest, KeepsAControllerThatAnotherVolumeNeeds) {
  world.shared = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(world.count("disconnect"), 0);
}

class CoveredMountTest : public DownTest {
 protected:
  CoveredMountTest() {
    settings.access = config::Access::Exclusive;
    world.reservations.offers = true;
  }
};

TEST_F(CoveredMountTest, AVolumeWithAMountOnTopStaysReservedAndTheMountIsNamed) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_EQ(world.reservations.state.registrants.size(), 1u);
  world.mount("/mnt/data", false, 7, "tmpfs", "tmpfs");
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().kind, Errc::Refused);
  EXPECT_THAT(down.error().what, HasSubstr("tmpfs"));
  EXPECT_THAT(down.error().message(), HasSubstr("umount /mnt/data"));
  EXPECT_EQ(world.mounts.size(), 2u);
  EXPECT_EQ(world.count("unmount") + world.count("release") + world.count("disconnect"), 0);
  EXPECT_EQ(world.reservations.state.registrants.size(), 1u);
}

TEST_F(CoveredMountTest, TheVolumeGoesDownOnceTheMountOnTopIsGone) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mount("/mnt/data", false, 7, "tmpfs", "tmpfs");
  ASSERT_FALSE(ask_down());
  world.mounts.pop_back();
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(world.count("release"), 1);
}

TEST_F(DownTest, AnNvmeVolumeIsNotTakenDownByForce) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  log::start();
  testing::internal::CaptureStderr();
  const auto down = ask_down(OnDown::Force);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("takes it down by force"), std::string::npos);
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().kind, Errc::Refused);
  EXPECT_THAT(down.error().what, HasSubstr("it is no NFS volume"));
  EXPECT_THAT(down.error().hint, HasSubstr("`sudo nvme disconnect -n raid5-data`"));
  EXPECT_EQ(world.count("record down"), 0);
  EXPECT_EQ(volume->status().state, State::Ready);
}

}  // namespace
}  // namespace spark::volumes
