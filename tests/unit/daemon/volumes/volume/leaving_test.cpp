// How a volume leaves the host, also after a `volumes down` that was interrupted by a crash of the daemon.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

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

class LeavingTest : public VolumeTest {
 protected:
  // Asks for it, without waiting for the answer.
  void begin_down() {
    auto ask = [](std::shared_ptr<Volume> asked,
                  std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked->requests().keep_down("alice");
    };
    boost::asio::co_spawn(context, ask(volume, down), boost::asio::detached);
  }
  void start_writer() {
    settings.access = config::Access::Exclusive;
    settings.fence = config::Fence::None;
    timings.flush_silence = Duration(5);
    start();
    ASSERT_TRUE(becomes(State::Ready));
    world.flush_waits = true;
  }
  std::optional<Result<>> down;
};

TEST_F(LeavingTest, TheConnectionStaysWhileAnotherOfItsNamespacesIsMounted) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.owners[55] = kNqn;
  world.mount("/mnt/other", false, 55, "/dev/nvme7n2");
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_EQ(world.mounts.size(), 1U);
}

// For example at the place of an earlier configuration, which a reload could not leave.
TEST_F(LeavingTest, AVolumeThatIsMountedAtAnotherPlaceOnlyIsNotDown) {
  settings.nvme->filesystem_uuid = "0000aaaa-1111-2222-3333-444444444444";
  world.plug_in(kNqn);
  world.mount("/mnt/old", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("is mounted at /mnt/old"));
  EXPECT_EQ(world.count("disconnect"), 0);
  world.mounts.clear();
  down.reset();
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
}

TEST_F(LeavingTest, WhatIsKnownOfTheMountEndsWithItEvenIfTheDisconnectFails) {
  start_writer();
  world.flush_waits = false;
  world.disconnect_error = Error{Errc::Refused, "nvme7n1 is in use", ""};
  bool is_known = true;
  world.while_disconnecting = [&] { is_known = volume->context().checked != nullptr; };
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_FALSE(*down);
  EXPECT_FALSE(is_known) << "a mount made meanwhile by a person may look the same";
}

TEST_F(LeavingTest, AMountMadeWhileTheReservationIsGivenBackIsReported) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.while_reserving = [&] {
    world.mount("/mnt/data", true, world.block->device_number);
    world.while_reserving = [] {};
  };
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("/dev/nvme7n1 was mounted there meanwhile - try again"));
}

TEST_F(LeavingTest, AnUpDuringTheFlushKeepsItMounted) {
  start_writer();
  world.io_per_look = 1;
  begin_down();
  ASSERT_TRUE(becomes(State::Leaving));
  ASSERT_TRUE(await(context, volume->requests().keep_up()).value());
  EXPECT_TRUE(becomes(State::Ready)) << "while the flush goes on";
  ASSERT_TRUE(down);
  EXPECT_EQ(down->error().kind, Errc::Cancelled);
  EXPECT_EQ(world.count("unmount"), 0);
  world.flush_waits = false;
}

TEST_F(LeavingTest, AFlushIsWaitedForWhileItMakesProgress) {
  start_writer();
  world.io_per_look = 1;
  begin_down();
  const auto probes = world.count("probe");
  ASSERT_TRUE(run_until([&] { return world.count("probe") > probes + 30; }));
  EXPECT_EQ(volume->status().state, State::Leaving);
  world.flush_waits = false;
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
}

TEST_F(LeavingTest, DataIsFlushedAlthoughAProbeWaitsBehindIt) {
  start_writer();
  world.flush_waits = false;
  world.io_per_look = 1;
  world.stuck = true;
  begin_down();
  ASSERT_TRUE(run_until([&] { return world.count("flush") > 0 || down.has_value(); }));
  EXPECT_EQ(world.count("flush"), 1);
  world.stuck = false;
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
}

TEST_F(LeavingTest, ItIsUnmountedOnlyIfItsStateIsKnownAfterTheFlush) {
  start_writer();
  world.flush_waits = false;
  world.io_per_look = 1;
  world.stuck = true;
  world.while_flushing = [this] { world.stuck = world.answers = false; };
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("/dev/nvme7n1 does not answer, and its unwritten data"));
  EXPECT_EQ(world.count("flush"), 1);
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(LeavingTest, AMountThatCannotBeCheckedOnAFailedDiskNamesTheWayOut) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.superblock_error = Error{Errc::Failed, "reading /dev/nvme7n1: Input/output error", ""};
  start();
  ASSERT_TRUE(run_until([&] { return world.count("superblock") > 0; }));
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("Input/output error - try again when the target answers; if "
                                                 "its target is gone for good, `sudo nvme disconnect -n"));
}

TEST_F(LeavingTest, AFlushWithoutProgressIsGivenUpAndNothingIsCalledLost) {
  start_writer();
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_THAT(down->error().message(), HasSubstr("unwritten data waits for it - try again when the target"));
  EXPECT_EQ(world.count("unmount"), 0);
  world.flush_waits = false;
}

TEST_F(LeavingTest, AVolumeThatIsAskedDownWhileItConnectsIsNotMountedFirst) {
  world.while_connecting = [&] { begin_down(); };
  start();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(LeavingTest, AReservationThatCannotBeGivenBackWithoutAPathIsReported) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.superblock.has_mmp = true;
  world.superblock.mmp_node = FakeWorld::kNode;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.target_up = false;
  world.lose_device();
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre(HasSubstr("may still be held for this host")));
}

TEST_F(LeavingTest, WhatWasFoundOnTheConnectionEndsWithIt) {
  world.smart = nvmetcp::Smart{};
  world.smart->critical = {"spare space is low"};
  world.differences["10.0.0.5"] = {"keep_alive is 30, not 5"};
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().drives.has_value(); }));
  world.unsecured = Error{Errc::Refused, "nvme7 has no key", ""};
  ASSERT_TRUE(run_until([&] { return all_warnings(volume->status()).size() == 3; }));
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre());
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

TEST_F(VolumeTest, AWriterIsNotUnmountedWhileItsTargetIsSilent) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  const auto ask = [&] { return await(context, volume->requests().keep_down("bob")); };
  const auto refused = ask();
  ASSERT_TRUE(refused && !*refused);
  EXPECT_EQ(refused->error().kind, Errc::Unavailable);
  EXPECT_THAT(refused->error().message(), HasSubstr("no path to the target is live"));
  EXPECT_EQ(world.count("unmount"), 0);
  EXPECT_TRUE(becomes(State::Stalled));
  world.set_link("live");
  const auto down = ask();
  ASSERT_TRUE(down && *down);
  EXPECT_TRUE(world.mounts.empty());
}

}  // namespace
}  // namespace spark::volumes
