// Connections and mounts that existed before the daemon, whether made by it or by another program.
#include <gmock/gmock.h>

#include "daemon/log.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VolumeTest, AnotherProgramsConnectionIsTakenOverWithTheConfiguredTimers) {
  world.plug_in(kNqn);
  target->options.reconnect_delay = std::chrono::seconds(7);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("discover"), 0) << "it is there";
  EXPECT_EQ(world.count("connect"), 1);
  EXPECT_EQ(world.last_options.reconnect_delay, std::chrono::seconds(7));
  EXPECT_EQ(volume->status().paths.size(), 1U);
}

TEST_F(VolumeTest, AVolumeIsReadyEvenIfTakingItsConnectionOverFails) {
  world.plug_in(kNqn);
  world.connect_error = Error{Errc::Unavailable, "no answer", ""};
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(VolumeTest, AnotherProgramsConnectionStaysWhenTheVolumeGoesDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.controllers.front().owner = "stas";
  EXPECT_TRUE(await(context, volume->requests().ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_EQ(world.count("unmount"), 1);
}

TEST_F(VolumeTest, AChangeReportedByTheTargetStartsTheNextAttemptAtOnce) {
  timings.first_retry = timings.longest_retry = std::chrono::hours(1);
  world.offers.clear();
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().next_attempt.has_value(); }));
  world.offer(kNqn, "10.0.0.5", 4420);
  volume->requests().try_now();
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(VolumeTest, ARestartedDaemonAdoptsItsMountAndConnection) {
  timings.probe_reader = std::chrono::hours(1);
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  timings.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until([&] { return world.count("connect") == 1; }));
  EXPECT_THAT(world.touched, ElementsAre("superblock", "probe", "smart nvme7", "connect"));
}

TEST_F(VolumeTest, AnExistingMountIsPinnedLikeANewOne) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.superblock.stamp = 9;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(world.pinned);
  EXPECT_EQ(world.pinned->uuid, kUuid);
  EXPECT_EQ(world.pinned->stamp, 9u);
  EXPECT_TRUE(volume->status().warnings.empty());
}

TEST_F(VolumeTest, AReadOnlyMountThatMayHaveReplayedAJournalIsUsedWithAWarning) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mounts.back().super_options = "ro";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(all_warnings(volume->status()),
              ElementsAre(HasSubstr("was mounted with other options than spark-stage's")));
}

TEST_F(VolumeTest, WhatWasFoundOnAReadersMountEndsWithItsDisk) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mounts.back().super_options = "ro";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_EQ(volume->status().warnings.count(Warning::MountOptions), 1U);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_TRUE(volume->status().warnings.empty());
}

// A target that invents a namespace ID at each start.
TEST_F(VolumeTest, AFullStateFolderKeepsNoKnownFileSystemDown) {
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "former", 1, false};
  world.is_state_full = true;
  start();
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(VolumeTest, NoFileSystemIsAcceptedWhileTheRecordOfItsOwnCannotBeRead) {
  world.pin_error = Error{Errc::Failed, "reading datasets.json: Input/output error", ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("can't be read from its record: reading datasets.json"));
  EXPECT_EQ(world.count("mount ro"), 0);
  EXPECT_FALSE(world.pinned);
  world.pin_error.reset();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, ADeviceIsNotMountedIfItsOtherMountCannotBeSeen) {
  world.plug_in(kNqn);
  world.mount("/mnt/other", true, world.block->device_number);
  world.mount("/mnt/other", false, 7, "none", "tmpfs");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("is mounted at /mnt/other, with a file system that can't be seen"));
  world.mount("/mnt/third", true, world.block->device_number);
  EXPECT_TRUE(becomes(State::Ready)) << "all its mounts show the same";
}

TEST_F(VolumeTest, TheRecordOfAnotherFileSystemEndsWithAnAdoptionThatCannotBeRecorded) {
  settings.nvme->filesystem_uuid = kUuid;
  world.pinned = FilesystemIdentity{"ext4", "99999999-bbbb-cccc-dddd-eeeeeeeeeeee", 0, "", 1, false};
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.is_state_full = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(world.pinned);
}

TEST_F(VolumeTest, ARestartedDaemonNeverReportsAFrozenMountAsReady) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.set_link("connecting");
  start();
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_TRUE(world.touched.empty());
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Ready)));
}

TEST_F(VolumeTest, AReadWriteMountOfAReadOnlyVolumeIsNotAdopted) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("read-write already"));
  EXPECT_EQ(world.mounts.size(), 1u);
}

// The volume's own namespace is missing on the target.
TEST_F(VolumeTest, AnotherNamespaceMountedThereIsNotTheVolume) {
  world.plug_in(kNqn);
  world.block.reset();
  world.owners[55] = kNqn;
  world.nsids[55] = 2;
  world.mount("/mnt/data", true, 55, "/dev/nvme7n2");
  start();
  ASSERT_TRUE(run_until([&] { return volume->context().attempts.failed; }));
  EXPECT_FALSE(world.pinned);
  ASSERT_TRUE(await(context, volume->requests().keep_down("alice")).value());
  EXPECT_EQ(world.mounts.size(), 1U);
}

// A person saves data from a damaged file system.
TEST_F(VolumeTest, AReadOnlyMountOfAnExclusiveVolumeIsNeverUnmounted) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("is mounted read-only already"));
  EXPECT_EQ(world.count("detach") + world.count("unmount"), 0);
}

TEST_F(VolumeTest, AForeignMountAtTheMountPointIsNeverUnmounted) {
  world.owners[55] = "a-local-drive";
  world.mount("/mnt/data", false, 55, "/dev/nvme0n1p2");
  world.mount_error = Error{Errc::Refused, "/mnt/data carries /dev/nvme0n1p2 already", "unmount it"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("detach") + world.count("unmount"), 0);
}

// Everything that this daemon knew about the mount before it was taken down ended with that mount.
TEST_F(VolumeTest, AMountMadeByHandWhileTheVolumeWasDownIsNeverShutDown) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(await(context, volume->requests().keep_down("alice")).value());
  world.plug_in(kNqn);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";  // mkfs by hand
  world.mounted_uuid = world.superblock.uuid;
  world.mount("/mnt/data", false, world.block->device_number);
  world.touched.clear();
  ASSERT_TRUE(await(context, volume->requests().keep_up()).value());
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("holds file system 99999999"));
  EXPECT_EQ(world.count("stop writing") + world.count("disconnect") + world.count("unmount"), 0);
  EXPECT_EQ(world.mounts.size(), 1U);
}

TEST_F(VolumeTest, AMountThatHasTheNumberOfTheOneBeforeItIsCheckedAnew) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const mounts::Mount before = world.mounts.back();
  ASSERT_TRUE(await(context, volume->requests().keep_down("alice")).value());
  world.plug_in(kNqn);
  world.superblock.uuid = world.mounted_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.owners[before.device_number] = kNqn;
  world.block->device_number = before.device_number;
  world.mounts.push_back(before);
  world.touched.clear();
  ASSERT_TRUE(await(context, volume->requests().keep_up()).value());
  ASSERT_TRUE(becomes(State::Refused)) << reason();
  EXPECT_EQ(world.count("stop writing") + world.count("disconnect") + world.count("unmount"), 0);
}

TEST_F(VolumeTest, AVolumeIsNotReadyWhileAMountOverItsParentFolderHidesIt) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mount("/mnt", false, 7, "none", "tmpfs");
  world.mounts.back().parent_id = FakeWorld::kRootMount;
  ASSERT_TRUE(run_until([&] { return volume->status().state != State::Ready; }));
  EXPECT_THAT(reason(), HasSubstr("hides volume datasets at"));
  const auto down = await(context, volume->requests().keep_down("alice")).value();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().message(),
              HasSubstr("none (tmpfs) is mounted on /mnt and hides volume datasets at /mnt/data"));
  EXPECT_THAT(down.error().message(), HasSubstr("umount /mnt"));
  world.mounts.pop_back();
  EXPECT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumeTest, WhyAHiddenWriterIsNotWatchedIsLoggedOnce) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  settings.nvme->filesystem_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.mount("/mnt/data", false, 7, "none", "tmpfs");
  log::start();
  testing::internal::CaptureStderr();
  start();
  EXPECT_TRUE(run_until([&] { return world.count("superblock") > 4; })) << reason();
  const std::string said = testing::internal::GetCapturedStderr();
  const auto first = said.find("; continuing");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("; continuing", first + 1), std::string::npos) << said;
  EXPECT_THAT(all_warnings(volume->status()), testing::IsEmpty());
}

TEST_F(VolumeTest, ABindMountOfAFolderOfTheVolumeIsNotTheVolume) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mounts.back().root = "/folder";
  world.mount_error = Error{Errc::Refused, "/mnt/data carries /dev/nvme7n1 already", "unmount it"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.mounts.size(), 1U);
}

class PublishedAdoption : public VolumeTest {
 protected:
  PublishedAdoption() {
    settings.access = config::Access::Exclusive;
    world.reservations.offers = true;
    world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 0, true};
    world.plug_in(kNqn);
    world.mount("/mnt/data", true, world.block->device_number);
    world.mounts.back().super_options = "ro";  // it was writable before it was published
  }
};

TEST_F(PublishedAdoption, ARestartedDaemonLeavesItToItsReadersAlthoughAnotherHostReservedItSince) {
  sim::SimulatedReservations other(world.reservations, "99999999-2222-3333-4444-555555555555");
  ASSERT_TRUE(nvmetcp::take_reservation(other, {"99999999-2222-3333-4444-555555555555", 99, 0}));
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(PublishedAdoption, ARestartedDaemonAcceptsAFreeReservationAndDoesNotWarn) {
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_THAT(all_warnings(volume->status()), testing::IsEmpty());
}

TEST_F(PublishedAdoption, APublicationThatACrashKeptFromBeingRecordedIsRecorded) {
  world.pinned->is_published = false;
  world.mounted_uuid = kUuid;
  world.published = mounts::Published{1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_TRUE(world.pinned->is_published);
  EXPECT_THAT(reason(), HasSubstr("published as generation 1"));
}

TEST_F(PublishedAdoption, ARecordOfAnotherFileSystemDoesNotKeepTheVolumeReadOnly) {
  world.mounts.clear();
  settings.nvme->filesystem_uuid = world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  settings.fence = config::Fence::Reservation;
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.count("mount rw"), 1);
  EXPECT_FALSE(world.pinned->is_published);
}

}  // namespace
}  // namespace spark::volumes
