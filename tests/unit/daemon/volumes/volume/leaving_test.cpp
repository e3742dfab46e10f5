// How a volume leaves the host.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre(HasSubstr("another of its namespaces is mounted")));
  world.mounts.clear();
  begin_down();
  ASSERT_TRUE(run_until([&] { return world.controllers.empty(); })) << "a second down disconnects";
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre());
}

// By LVM, for example: no mount shows it.
TEST_F(LeavingTest, TheConnectionStaysWithAWarningWhileAnotherOfItsNamespacesIsUsed) {
  start_writer();
  world.flush_waits = false;
  world.disconnect_error = Error{Errc::Refused, "dm-0 is built on nvme7n2", "take it down first"};
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_THAT(
      all_warnings(volume->status()),
      ElementsAre("its connection stayed as it went down: dm-0 is built on nvme7n2 - take it down first"));
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_TRUE(await(context, volume->requests().keep_down("alice")).value()) << "still in use";
  EXPECT_FALSE(world.controllers.empty());
  world.disconnect_error.reset();
  EXPECT_TRUE(await(context, volume->requests().keep_down("alice")).value());
  EXPECT_TRUE(world.controllers.empty());
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre());
  ASSERT_TRUE(await(context, volume->requests().keep_up()).value());
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(all_warnings(volume->status()), ElementsAre());
}

TEST_F(LeavingTest, AnotherNamespaceInUseKeepsAllItsPaths) {
  start_writer();
  world.flush_waits = false;
  auto second = world.controllers.front();
  second.name = "nvme8";
  world.controllers.push_back(second);
  world.disconnect_error = Error{Errc::Refused, "dm-0 is built on nvme7n2", ""};
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  EXPECT_TRUE(*down);
  EXPECT_EQ(world.controllers.size(), 2U);
}

// A program writes through a mount that was detached, as by `umount -l`.
TEST_F(LeavingTest, AVolumeWhoseOwnNamespaceIsStillInUseIsNotDown) {
  start_writer();
  world.flush_waits = false;
  world.superblock.is_claimed = true;
  world.disconnect_error = Error{Errc::Refused, "its nvme7n1 is still in use on this host", ""};
  begin_down();
  ASSERT_TRUE(run_until([&] { return down.has_value(); }));
  ASSERT_FALSE(*down);
  EXPECT_THAT(down->error().message(), HasSubstr("its nvme7n1 is still in use"));
  EXPECT_NE(volume->status().state, State::Down);
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
  world.superblock.is_claimed = true;
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

// Its device is gone by the time that the disconnect is refused.
TEST_F(LeavingTest, AMountMadeBeforeTheDisconnectIsReportedAlthoughItIsDeadByNow) {
  start_writer();
  world.flush_waits = false;
  world.while_disconnecting = [&] {
    world.mount("/mnt/data", false, world.block->device_number);
    world.lose_device();
    world.disconnect_error = Error{Errc::Refused, "its nvme7n1 is still in use on this host", ""};
    world.while_disconnecting = [] {};
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

// With many volumes each is probed seldom; the answer comes all the same.
TEST_F(VolumeTest, AWriterIsNotUnmountedWhileItsTargetIsSilent) {
  timings.probe = std::chrono::hours(1);
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
