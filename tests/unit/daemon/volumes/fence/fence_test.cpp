// The fence of an exclusive volume: reservation and multi-mount protection, held, refused, lost, taken over.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/unit/daemon/volumes/fence/fence_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(FenceTest, TheReservationIsHeldWhileMountedAndReleasedBeforeTheDisconnect) {
  timings.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  EXPECT_TRUE(volume->status().fence.reservation);
  world.touched.clear();
  auto down = [](Volume& asked) -> boost::asio::awaitable<void> {
    (void)co_await asked.requests().ask_down();
  };
  boost::asio::co_spawn(context, down(*volume), boost::asio::detached);
  ASSERT_TRUE(becomes(State::Down));
  std::erase(world.touched, "probe");  // a periodic probe may have run
  EXPECT_THAT(world.touched, ElementsAre("flush", "unmount", "release", "disconnect"));
  EXPECT_EQ(holder(), "");
}

TEST_F(FenceTest, ANamespaceHeldByAnotherHostIsRefusedAndTheHolderIsNamed) {
  let_another_host_hold_it();
  let_another_host_open_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr(kOther));
  EXPECT_THAT(reason(), HasSubstr("spark2"));
  EXPECT_THAT(reason(), HasSubstr("volumes take datasets"));
  EXPECT_EQ(world.count("mount rw"), 0);
  EXPECT_EQ(holder(), kOther);
}

TEST_F(FenceTest, ARefusedVolumeIsMountedOnceTheOtherHostReleasesTheReservation) {
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  ASSERT_TRUE(nvmetcp::release_reservation(other, kThem));
  EXPECT_TRUE(becomes(State::Ready));
}

// The kernel would show the older mount's state at the new one too.
TEST_F(FenceTest, ATakeoverIsRefusedBesideAnOlderMountOfTheDevice) {
  let_another_host_hold_it();
  world.plug_in(kNqn);
  world.mount("/mnt/other", true, world.block->device_number);
  world.superblock.is_claimed = true;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_FALSE(take());
  EXPECT_THAT(reason(), HasSubstr("is mounted at /mnt/other, perhaps in a state that is older"));
  EXPECT_EQ(holder(), kOther);
  world.mounts.pop_back();
  EXPECT_FALSE(take());
  EXPECT_THAT(reason(), HasSubstr("or a mount that this host's mount table does not show"));
  world.superblock.is_claimed = false;
  EXPECT_TRUE(take());
  EXPECT_EQ(holder(), FakeWorld::kHostId);
}

TEST_F(FenceTest, AReadOnlyMountDoesNotProveThatThisHostWroteTheNamespace) {
  world.superblock.has_mmp = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.back().options = "ro,relatime";
  world.superblock.being_written = true;
  world.reservations.restart();
  world.lose_device();
  EXPECT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("volumes take datasets"));
}

TEST_F(FenceTest, AReservationReleasedByAnotherHostIsNotMistakenForAForgottenOne) {
  world.superblock.has_mmp = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.being_written = true;
  world.reservations.restart();
  world.lose_device();
  ASSERT_TRUE(nvmetcp::take_reservation(other, kThem));
  ASSERT_TRUE(nvmetcp::release_reservation(other, kThem));
  EXPECT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("volumes take datasets"));
}

TEST_F(FenceTest, WithOnlyMmpAClosedFileSystemIsClaimedAndTheWaitIsReported) {
  world.reservations.offers = false;
  std::string said;
  world.while_mounting = [&] { said = volume->status().reason; };
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.last_mount.claim_as, FakeWorld::kNode);
  EXPECT_THAT(said, HasSubstr("multi-mount protection waits 11 s"));
}

TEST_F(FenceTest, WithAReservationTheFileSystemIsMountedWithoutAnMmpClaim) {
  std::string said;
  world.while_mounting = [&] { said = volume->status().reason; };
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.last_mount.claim_as, "");
  EXPECT_EQ(said.find("multi-mount"), std::string::npos) << said;
}

TEST_F(FenceTest, WithOnlyMmpAFileSystemOpenOnAnotherHostIsRefusedAndTheHostNamed) {
  world.reservations.offers = false;
  let_another_host_open_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("host 'spark2' has it open for writing, or died"));
  EXPECT_EQ(world.count("mount rw"), 0);
}

TEST_F(FenceTest, AFileSystemLeftUncleanByThisHostIsMountedAgain) {
  world.reservations.offers = false;
  world.superblock.mmp_open = world.superblock.being_written = true;
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(FenceTest, WithoutMmpAnUncleanFileSystemIsMountedOnlyUnderAHeldReservation) {
  world.superblock.has_mmp = false;
  world.superblock.mmp_node.clear();
  world.superblock.being_written = true;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  volume->stop();
  sim::SimulatedReservations mine{world.reservations, FakeWorld::kHostId};
  ASSERT_EQ(nvmetcp::hold_reservation(mine, {FakeWorld::kHostId, 11})->hold, nvmetcp::Hold::Ours);
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(FenceTest, AVolumeThatRequiresAReservationIsRefusedIfTheTargetOffersNone) {
  world.reservations.offers = false;
  settings.fence = config::Fence::Reservation;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("offers none"));
}

TEST_F(FenceTest, FenceNoneAndFenceMmpSendNoReservationCommand) {
  for (const auto fence : {config::Fence::None, config::Fence::Mmp}) {
    settings.fence = fence;
    start();
    ASSERT_TRUE(becomes(State::Ready));
    EXPECT_TRUE(world.reservations.commands.empty());
    volume->stop();
  }
}

TEST_F(FenceTest, AFailedMountReleasesItsNewReservation) {
  world.mount_error = Error{Errc::Refused, "host 'spark2' has it open (MMP)", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(holder(), "");
}

TEST_F(FenceTest, LosingTheReservationStopsWritingAndNamesTheHolder) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  let_another_host_hold_it();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr(kOther));
  EXPECT_THAT(reason(), HasSubstr("stopped here at once"));
  EXPECT_EQ(world.count("stop writing"), 1);
  ASSERT_TRUE(run_until([&] { return reason().find("python3") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Refused) << "as long as its dead mount is in use";
  world.unmount_error.reset();
  ASSERT_TRUE(run_until([&] { return world.mounts.empty(); }));
  EXPECT_EQ(holder(), kOther);
  EXPECT_EQ(world.count("mount rw"), 1);
}

TEST_F(FenceTest, AFileSystemShutDownByRefusedWritesReportsTheTakeover) {
  timings.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  let_another_host_hold_it();
  world.mounts[0].super_options = "rw,emergency_ro";
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("has taken over namespace 1"));
}

TEST_F(FenceTest, AnotherHostInTheMmpBlockStopsWriting) {
  world.reservations.offers = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  let_another_host_open_it();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, ARestartOfTheTargetOnlyCausesANewRegistration) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.reservations.restart();
  ASSERT_TRUE(run_until([&] { return holder() == FakeWorld::kHostId; }));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(FenceTest, ARestartedDaemonStopsWritingIfItsReservationWasTakenMeanwhile) {
  let_another_host_hold_it();
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(FenceTest, ARestartedDaemonHoldsTheReservationOfItsEarlierMount) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  EXPECT_EQ(world.count("mount rw"), 0);
}

TEST_F(FenceTest, ADaemonStartedDuringAnOutageFindsItsFenceWhenTheLinkIsBack) {
  world.reservations.offers = false;
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.set_link("connecting");
  start();
  ASSERT_TRUE(becomes(State::Stalled));
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_TRUE(volume->status().mounted().has_mmp);
  run_until([&] { return world.count("probe") > 3; });
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(FenceTest, ADaemonStartedDuringAnOutageStopsWritingAfterATakeover) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.set_link("connecting");
  start();
  ASSERT_TRUE(becomes(State::Stalled));
  let_another_host_hold_it();
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Refused)) << reason();
  EXPECT_EQ(world.count("stop writing"), 1);
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Ready)));
}

TEST_F(FenceTest, WithoutMmpAMountIsNotAdoptedAfterAnotherHostHeldTheReservation) {
  world.superblock.has_mmp = false;
  let_another_host_hold_it();
  ASSERT_TRUE(nvmetcp::release_reservation(other, kThem));
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(holder(), "");
  EXPECT_EQ(world.mounts.size(), 1u) << "nobody's mount is taken off";
}

TEST_F(FenceTest, TakePreemptsTheHolderAndMountsTheVolume) {
  let_another_host_hold_it();
  let_another_host_open_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  const auto taken = take();
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_THAT(*taken, HasSubstr("spark2"));
  EXPECT_EQ(holder(), FakeWorld::kHostId);
  EXPECT_EQ(world.count("mount rw"), 1);
}

TEST_F(FenceTest, TakeWithoutMmpWaitsForTheOtherHostsKeepAliveToExpire) {
  world.superblock.has_mmp = false;
  target->options.keep_alive = std::chrono::seconds(1);
  let_another_host_hold_it();
  start();
  ASSERT_TRUE(becomes(State::Refused));
  const auto before = clock.steady();
  ASSERT_TRUE(take());
  EXPECT_GE(clock.steady() - before, std::chrono::seconds(3));
}

TEST_F(FenceTest, ACloneWithTheSameHostIdAndKeyIsRefusedWhileTheOtherHostWrites) {
  world.superblock.has_mmp = false;
  world.superblock.being_written = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, FakeWorld::kFormerKey, true}};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("although this host ID holds the reservation"));
  EXPECT_THAT(reason(), HasSubstr("host new-identity"));
  EXPECT_EQ(world.count("mount rw"), 0);
  EXPECT_TRUE(world.reservations.commands.empty());
  world.superblock.being_written = false;  // closed by its writer
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(run_until([&] { return world.reservations.holder()->key == FakeWorld::kKey; }));
}

TEST_F(FenceTest, AnAdoptedMountsFormerKeyIsReplacedWhileTheReservationIsHeld) {
  world.superblock.has_mmp = false;
  world.superblock.being_written = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, FakeWorld::kFormerKey, true}};
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  ASSERT_TRUE(run_until([&] { return world.reservations.holder()->key == FakeWorld::kKey; }));
  EXPECT_THAT(world.reservations.commands, ElementsAre("replace"));
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(FenceTest, TakeWorksAfterThisHostsMachineIdHasChanged) {
  target->options.keep_alive = std::chrono::seconds(0);
  world.superblock.has_mmp = false;
  world.superblock.being_written = true;  // the writer crashed
  world.reservations.state.registrants = {{FakeWorld::kHostId, 77, true}};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("another machine with this host's own host ID"));
  EXPECT_THAT(reason(), HasSubstr("host new-identity"));
  EXPECT_THAT(reason(), HasSubstr("volumes take datasets"));
  const auto taken = take();
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(world.count("mount rw"), 1);
  EXPECT_NE(world.reservations.holder()->key, 77u);
}

TEST_F(FenceTest, TakeOfAReadyVolumeChangesNothing) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.reservations.commands.clear();
  EXPECT_EQ(take().value(), "");
  EXPECT_TRUE(world.reservations.commands.empty());
}

TEST_F(FenceTest, TakeIsRefusedForAReadOnlyVolume) {
  settings.access = config::Access::ReadOnly;
  start();
  EXPECT_EQ(take().error().kind, Errc::Refused);
}

}  // namespace
}  // namespace spark::volumes
