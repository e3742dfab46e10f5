#include "tests/unit/daemon/service/release_fixture.hpp"

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(ReleaseTest, UnmountsThenDisconnectsIfTheTargetAnswers) {
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "disconnect"));
}

TEST_F(ReleaseTest, CutsOffAnUnreachableTargetWithoutTouchingItsMount) {
  world.set_link("connecting");
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_THAT(world.touched, ElementsAre("cut off"));
}

TEST_F(ReleaseTest, CutsOffASilentTargetDespiteALiveLink) {
  world.answers = false;
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "cut off"));
}

TEST_F(ReleaseTest, CutsOffATargetThatGoesSilentDuringTheUnmount) {
  world.unmount_takes = Duration(300);
  world.while_unmounting = [this] { world.set_link("connecting"); };
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "cut off"));
}

TEST_F(ReleaseTest, CutsOffAMountThatWaitsForAnAddressItsTargetHasLeft) {
  nvmetcp::Namespace now = *world.block;
  world.others["nvme7"] = world.block;
  world.set_link("connecting");
  now.device = "nvme8n1";
  now.device_number = world.next_device++;
  world.block = now;
  world.owners[now.device_number] = "raid5-data";
  nvmetcp::Controller live = world.controllers.front();
  live.name = "nvme8";
  live.state = "live";
  live.portal.address = "10.0.0.20";
  world.controllers.insert(world.controllers.begin(), live);
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force, unwritten data is lost, nvme8 disc"));
  EXPECT_THAT(world.touched, ElementsAre("cut off", "cut off"));
}

TEST_F(ReleaseTest, OutsideAShutdownASilentTargetIsKeptAndTheForceCommandIsNamed) {
  why = ReleaseReason::Asked;
  world.set_link("connecting");
  EXPECT_THAT(release(), HasSubstr("does not answer: left unchanged; `nvme disconnect -n raid5-data`"));
  world.set_link("live");
  world.answers = false;
  EXPECT_THAT(release(), HasSubstr("left unchanged"));
  mount_nfs();
  EXPECT_THAT(release(), HasSubstr("`umount -f -l /mnt/data`"));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_EQ(
      world.count("unmount") + world.count("detach") + world.count("disconnect") + world.count("cut off"), 0);
}

TEST_F(ReleaseTest, OutsideAShutdownAnAnsweringTargetIsUnmountedAndDisconnected) {
  why = ReleaseReason::Asked;
  world.records[volumes::Record::Held] = {{"mount", "a later mount may look the same"}};
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(world.records[volumes::Record::Held].empty());
}

TEST_F(ReleaseTest, ADisconnectThatFailsFailsTheRelease) {
  why = ReleaseReason::Asked;
  world.disconnect_error = Error{Errc::TimedOut, "the kernel has not finished", ""};
  EXPECT_EQ(release(), "volume datasets: unmounted, the kernel has not finished");
  EXPECT_FALSE(is_done);
}

TEST_F(ReleaseTest, AConnectionThatAnotherProgramUsesStaysWithoutAFailure) {
  why = ReleaseReason::Asked;
  world.disconnect_error = Error{Errc::Refused, "dm-0 is built on nvme7n2", "take it down first"};
  EXPECT_EQ(
      release(),
      "volume datasets: unmounted, its connection stays: dm-0 is built on nvme7n2 - take it down first");
  EXPECT_TRUE(is_done);
}

TEST_F(ReleaseTest, TheMountOfALostDeviceIsDetached) {
  why = ReleaseReason::Asked;
  world.lose_device();
  EXPECT_EQ(release(), "volume datasets: unmounted");
  EXPECT_THAT(world.touched, ElementsAre("detach"));
}

TEST_F(ReleaseTest, AReservationIsKeptWhileTheDeviceIsAlsoMountedElsewhere) {
  volume.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, 11, true}};
  world.mount("/mnt/other", false, world.block->device_number);
  EXPECT_THAT(release(), HasSubstr("the device is mounted at /mnt/other too"));
  EXPECT_EQ(world.reservations.state.registrants.size(), 1u);
}

TEST_F(ReleaseTest, AWritersMountIsCutOffOrLeftIfItsDiskWasExchanged) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.mounted_uuid = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
  why = ReleaseReason::Asked;
  EXPECT_THAT(release(), HasSubstr("its unmount would write to it - `sudo nvme disconnect -n raid5-data`"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "stop writing"));
  world.touched.clear();
  why = ReleaseReason::Shutdown;
  world.stop_error = Error{Errc::TimedOut, "no answer", ""};
  EXPECT_THAT(release(), HasSubstr("its unmount would write to it; no answer"));
  EXPECT_EQ(world.count("cut off"), 0) << "the kernel may flush it first";
  world.stop_error.reset();
  EXPECT_THAT(release(), HasSubstr("would write to it: its writing was stopped, nvme7 disconnected"));
  EXPECT_EQ(world.touched.back(), "cut off");
}

TEST_F(ReleaseTest, AnotherDiskOfTheConnectionIsNotCutOffWithAnExchangedOne) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.mounted_uuid = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.owners[55] = "raid5-data";
  world.mount("/mnt/other", false, 55, "/dev/nvme7n2");
  EXPECT_THAT(release(), HasSubstr("its /dev/nvme7n2 is still in use - unmount it there first"));
  EXPECT_EQ(world.touched.back(), "cut off");
  EXPECT_FALSE(world.controllers.empty());
  EXPECT_FALSE(is_done);
  world.set_link("connecting");
  EXPECT_THAT(release(), HasSubstr("released by force, unwritten data is lost, nvme7 disconnected"));
}

TEST_F(ReleaseTest, UnwrittenDataIsFlushedFirstAndWhatCanNotBeWrittenIsSaid) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
  EXPECT_THAT(world.touched, ElementsAre("probe", "flush", "unmount", "disconnect"));
}

TEST_F(ReleaseTest, AServerThatGoesSilentDuringTheFlushIsLeft) {
  mount_nfs();
  world.flush_waits = true;
  world.while_flushing = [this] { world.answers = false; };
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_EQ(world.count("detach"), 1);
}

// Its requests queue behind the data that the flush sends.
TEST_F(ReleaseTest, AServerThatAnswersSlowlyDuringTheFlushIsNotLeft) {
  flush_silence = Duration(3'600'000);
  for (const auto reason : {ReleaseReason::Asked, ReleaseReason::Shutdown}) {
    why = reason;
    mount_nfs();
    world.while_flushing = [this] {
      world.flush_waits = true;
      world.silent_probes = 8;
    };
    world.while_probing = [this] { world.flush_waits = world.silent_probes > 0; };
    EXPECT_EQ(release(), "volume datasets: unmounted");
  }
}

TEST_F(ReleaseTest, WhatAnotherHostHasTakenOverIsNotFlushedOverItsNewerState) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  world.reservations.offers = true;
  world.reservations.state.registrants = {{"99999999-2222-3333-4444-555555555555", 12, true}};
  why = ReleaseReason::Asked;
  EXPECT_THAT(release(), testing::AllOf(HasSubstr("another host has taken it over"),
                                        HasSubstr("`sudo nvme disconnect -n raid5-data` ends the mount")));
  EXPECT_THAT(world.touched, ElementsAre("probe", "stop writing"));
}

TEST_F(ReleaseTest, AnExchangedDiskIsNoticedByItsRecordIfTheKernelDoesNotSay) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.pinned = volumes::FilesystemIdentity{"ext4", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", 0, "", 1, false};
  why = ReleaseReason::Asked;
  EXPECT_THAT(release(), HasSubstr("its unmount would write to it"));
  world.mount_answers = false;
  EXPECT_THAT(release(), HasSubstr("its unmount would write to it"));
  EXPECT_THAT(release(), Not(HasSubstr("nvme disconnect")));
  EXPECT_EQ(world.count("unmount") + world.count("stop writing"), 0);
  why = ReleaseReason::Shutdown;
  world.touched.clear();
  world.disconnect_error = Error{Errc::TimedOut, "the kernel has not finished", ""};
  EXPECT_THAT(release(), HasSubstr("its writing was stopped"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "stop writing", "cut off"));
  world.disconnect_error.reset();
  world.superblock.being_written = true;  // by this host: the record is of an earlier file system
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
}

TEST_F(ReleaseTest, ASlowUnmountIsWaitedForIfTheTargetAnswers) {
  world.unmount_takes = Duration(100);
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
}

TEST_F(ReleaseTest, CutsOffAnNfsServerThatGoesSilentDuringTheUnmount) {
  mount_nfs();
  world.unmount_takes = Duration(100);
  world.while_unmounting = [this] { world.answers = false; };
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_EQ(world.count("detach"), 1);
}

TEST_F(ReleaseTest, KeepsTheConnectionForProgramsThatDoNotExitAndNamesThem) {
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  EXPECT_THAT(release(), HasSubstr("in use by python3 (pid 7)"));
  EXPECT_GT(world.count("unmount"), 1);
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST_F(ReleaseTest, AForeignDevicesMountAtTheMountPointIsLeftAlone) {
  world.mounts.clear();
  world.mount("/mnt/data", false, 7, "/dev/sda1");
  EXPECT_THAT(release(),
              HasSubstr("/dev/sda1 (ext4) is mounted there, and is not this volume's: left alone"));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_THAT(world.touched, ElementsAre("disconnect")) << "which spares a device that is in use";
}

TEST_F(ReleaseTest, AForeignServersSilentMountAtTheMountPointIsNeverDetached) {
  volume.nvme.reset();
  volume.nfs = config::NfsSource{"10.0.0.9", "/data"};
  world.mounts.clear();
  world.mount("/mnt/data", false, 7, "10.0.0.8:/other", "nfs4");
  world.answers = false;
  EXPECT_THAT(release(), HasSubstr("10.0.0.8:/other (nfs4) is mounted there, and is not this volume's"));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_TRUE(world.touched.empty()) << "not even asked";
}

TEST_F(ReleaseTest, AVolumeWithAMountOnTopStaysMountedAndReserved) {
  volume.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, 11, true}};
  world.mount("/mnt/data", false, 7, "tmpfs", "tmpfs");
  EXPECT_THAT(
      release(),
      HasSubstr("tmpfs (tmpfs) is mounted on /mnt/data and hides volume datasets - unmount that first"));
  EXPECT_EQ(world.mounts.size(), 2u);
  EXPECT_TRUE(world.touched.empty());
}

TEST_F(ReleaseTest, AReservationIsReleasedBetweenUnmountAndDisconnect) {
  volume.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, 11, true}};
  EXPECT_EQ(release(), "volume datasets: unmounted, its reservation given back, nvme7 disconnected");
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "release", "disconnect"));
}

TEST_F(ReleaseTest, DisconnectsAVolumeThatIsNotMounted) {
  world.mounts.clear();
  EXPECT_EQ(release(), "volume datasets: not mounted, nvme7 disconnected");
}

TEST_F(ReleaseTest, ASharedConnectionStaysUntilBothNamespacesAreUnmounted) {
  EXPECT_THAT(release({unmounted_neighbour(), volume}),
              ElementsAre("volume logs: not mounted", "volume datasets: unmounted, nvme7 disconnected"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "disconnect"));
}

TEST_F(ReleaseTest, ASharedConnectionStaysWhileOneNamespaceIsInUse) {
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  release({volume, unmounted_neighbour()});
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST_F(ReleaseTest, AnNfsMountIsUnmounted) {
  mount_nfs();
  EXPECT_EQ(release(), "volume datasets: unmounted");
}

TEST_F(ReleaseTest, AMountOfASilentNfsServerIsReleasedByForce) {
  mount_nfs();
  world.answers = false;
  EXPECT_THAT(release(), HasSubstr("does not answer: released by force"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "detach"));
}

}  // namespace
}  // namespace spark
