// A `volumes down` that the end of the daemon interrupted.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <optional>

#include "nvmetcp/sysfs/registry.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The daemon is stopped, for example by an upgrade.
TEST_F(VolumeTest, ADownThatTheDaemonsEndCutsShortIsCompletedByTheNextDaemon) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.flush_waits = true;
  world.io_per_look = 1;
  std::optional<Result<>> down;
  auto ask = [](std::shared_ptr<Volume> asked,
                std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked->requests().keep_down("alice");
  };
  boost::asio::co_spawn(context, ask(volume, down), boost::asio::detached);
  ASSERT_TRUE(run_until([&] { return world.count("flush") == 1; }));
  volume->stop("is no longer watched: spark-staged ends");
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("spark-staged ends meanwhile"));
  EXPECT_FALSE(world.intent->up);
  EXPECT_FALSE(world.intent->is_released);
  EXPECT_EQ(world.count("unmount"), 0);
  seen.clear();
  start();
  ASSERT_TRUE(run_until([&] { return world.count("flush") == 2; })) << reason();
  EXPECT_EQ(volume->status().state, State::Leaving);
  world.flush_waits = false;
  ASSERT_TRUE(becomes(State::Down)) << reason();
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_EQ(world.count("stop writing"), 0) << "its data would be lost";
  EXPECT_TRUE(run_until([&] { return world.intent->is_released; }));
}

// The daemon ended after recording the intent and before carrying it out: the next start takes the volume
// down.
class UnfinishedDownTest : public VolumeTest {
 protected:
  UnfinishedDownTest() {
    world.intent = Intent{false, clock.wall(), "alice"};
    world.plug_in(kNqn);
    world.controllers[0].owner = nvmetcp::kOwner;
  }
  Result<> ask_down() {
    return await(context, volume->requests().keep_down("bob"))
        .value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
  Result<> ask_up() {
    return await(context, volume->requests().keep_up()).value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
  void mount() { world.mount("/mnt/data", true, world.block->device_number); }
};

TEST_F(UnfinishedDownTest, AVolumeStillMountedIsUnmountedAndDisconnected) {
  mount();
  const WallTime since = world.intent->since;
  start();
  ASSERT_TRUE(run_until([&] { return world.intent->is_released; })) << reason();
  EXPECT_TRUE(becomes(State::Down));
  EXPECT_THAT(world.touched, ElementsAre("unmount", "disconnect", "record released"));
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_TRUE(run_until([&] { return volume->status().since == since; }));
  EXPECT_EQ(to_json(settings, volume->status()).at("down").at("by"), "alice");
}

TEST_F(UnfinishedDownTest, ItsFlushIsWaitedForWhileItMakesProgress) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  timings.flush_silence = Duration(5);
  world.mount("/mnt/data", false, world.block->device_number);
  world.flush_waits = true;
  world.io_per_look = 1;
  start();
  ASSERT_TRUE(run_until([&] { return world.io_looks > 50; }));
  EXPECT_EQ(world.count("flush"), 1) << reason();
  EXPECT_THAT(reason(), HasSubstr("being written to /dev/nvme7n1"));
  world.flush_waits = false;
  EXPECT_TRUE(becomes(State::Down));
}

TEST_F(UnfinishedDownTest, ASecondDownDisconnectsAVolumeStillConnected) {
  start();
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_TRUE(world.controllers.empty());
  EXPECT_TRUE(world.intent->is_released);
}

TEST_F(UnfinishedDownTest, TheReservationIsReleased) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, FakeWorld::kKey, true}};
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(run_until([&] { return world.intent->is_released; })) << reason();
  EXPECT_TRUE(world.reservations.state.registrants.empty());
}

TEST_F(UnfinishedDownTest, ADeadMountIsDetached) {
  mount();
  world.lose_device();
  start();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(world.mounts.empty());
}

TEST_F(UnfinishedDownTest, AForeignMountAndConnectionAreLeftAlone) {
  world.mount("/mnt/data", false, 7, "tmpfs", "tmpfs");
  world.controllers[0].owner = "stas";
  start();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_EQ(world.controllers.size(), 1u);
}

TEST_F(UnfinishedDownTest, AVolumeInUseIsRetriedUntilItIsDownAndNeverBecomesReady) {
  mount();
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("was taken down by alice at 20"));
  EXPECT_THAT(reason(), HasSubstr("in use by python3 (pid 7)"));
  EXPECT_FALSE(ask_down());
  EXPECT_FALSE(world.intent->up);
  EXPECT_EQ(world.count("record up"), 0);
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 3; })) << "it is tried again";
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  world.unmount_error.reset();
  ASSERT_TRUE(becomes(State::Down));
}

TEST_F(UnfinishedDownTest, AReloadThatCannotUnmountTheVolumeDoesNotBringItUp) {
  mount();
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_FALSE(await(context, volume->requests().ask_down(OnDown::KeepConnection)).value_or(Result<>()));
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 3; }));
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  world.unmount_error.reset();
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(world.controllers.empty());
}

TEST_F(UnfinishedDownTest, TheUnmountWaitsForALinkThatIsDown) {
  mount();
  world.set_link("connecting");
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("no path to the target is live") != std::string::npos; }));
  EXPECT_TRUE(world.touched.empty());
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Down));
  EXPECT_TRUE(world.mounts.empty());
}

TEST_F(UnfinishedDownTest, TheUnmountWaitsForAHostNameThatCannotBeResolved) {
  target->portals = {{"nas.lan", 4420}};
  world.target_up = false;
  mount();
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("its name can't be looked up") != std::string::npos; }));
  EXPECT_EQ(world.count("unmount") + world.count("disconnect"), 0);
  world.names["nas.lan"] = "10.0.0.5";
  ASSERT_TRUE(run_until([&] { return world.intent->is_released; })) << reason();
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_TRUE(world.controllers.empty());
}

TEST_F(UnfinishedDownTest, BringingTheVolumeUpUsesItsExistingMount) {
  mount();
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_TRUE(ask_up());
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(UnfinishedDownTest, AVolumeNeedsItsSubsystemUntilItsReleaseIsRecorded) {
  start();
  EXPECT_TRUE(volume->wants_subsystem(kNqn));
  volume->stop();
  world.intent->is_released = true;
  start();
  EXPECT_FALSE(volume->wants_subsystem(kNqn));
}

}  // namespace
}  // namespace spark::volumes
