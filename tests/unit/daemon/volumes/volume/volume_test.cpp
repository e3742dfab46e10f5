// Bringing a volume up, losing it, and taking it down.
#include <gmock/gmock.h>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VolumeTest, AReadOnlyVolumeIsMountedAfterDiscoveryConnectAndSuperblock) {
  timings.probe_reader = std::chrono::hours(1);
  timings.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched,
              ElementsAre("discover", "connect", "superblock", "mount ro", "probe", "smart nvme7"));
  EXPECT_EQ(volume->status().filesystem_uuid, kUuid);
  EXPECT_EQ(volume->status().device, "/dev/nvme7n1");
  EXPECT_EQ(world.pinned->uuid, kUuid);
  EXPECT_EQ(volume->status().paths.at(0).state, "live");
}

TEST_F(VolumeTest, AVolumeWaitsForAnUnreachableTargetAndRetriesAutomatically) {
  world.target_up = false;
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().next_attempt && world.count("discover") > 2; }));
  EXPECT_EQ(volume->status().state, State::Waiting);
  EXPECT_THAT(reason(), HasSubstr("target rose unreachable"));
  world.target_up = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(reason(), "");
  EXPECT_FALSE(volume->status().next_attempt);
}

TEST_F(VolumeTest, ASubsystemNotOfferedToThisHostIsReportedWithTheAllowList) {
  world.offers.clear();
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("not offered to this host NQN") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Waiting);
  EXPECT_THAT(reason(), HasSubstr(std::string("add ") + FakeWorld::kHost));
  EXPECT_EQ(world.count("connect"), 0);
}

TEST_F(VolumeTest, ASubsystemOfferedAtAnotherPortIsReportedWithThatPort) {
  world.offers.clear();
  world.offer(kNqn, "10.0.0.5", 4421);
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("10.0.0.5:4421") != std::string::npos; }));
  EXPECT_THAT(reason(), HasSubstr("not offered at 10.0.0.5:4420"));
  EXPECT_EQ(world.count("connect"), 0);
}

TEST_F(VolumeTest, AFailedConnectNamesTheAddressInTheDiscoveryLog) {
  world.offers.clear();
  world.offer(kNqn, "192.168.7.7", 4420);
  world.connect_error = Error{Errc::Unavailable, "nobody answers", ""};
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("nobody answers") != std::string::npos; }));
  EXPECT_THAT(reason(), HasSubstr("192.168.7.7:4420"));
  world.connect_error.reset();
  EXPECT_TRUE(becomes(State::Ready))
      << "many targets list an address that is not the one they are reached at";
}

TEST_F(VolumeTest, ATargetWithoutADiscoveryServiceIsConnectedDirectly) {
  world.has_discovery = false;
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AFileSystemOtherThanThePinnedOneIsRefusedAndNeverMounted) {
  world.pinned = FilesystemIdentity{"ext4", "00000000-0000-0000-0000-000000000001", 0, ""};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("as at the first mount"));
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(VolumeTest, AFileSystemOtherThanTheConfiguredOneIsRefused) {
  settings.nvme->filesystem_uuid = "00000000-0000-0000-0000-000000000002";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("as in the config"));
}

TEST_F(VolumeTest, ABlankNamespaceIsRefusedAndTheFormatCommandIsNamed) {
  world.superblock = {};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(),
              HasSubstr("holds no file system - `sudo spark-stage volumes format datasets` makes one, on"));
}

TEST_F(VolumeTest, ANamespaceWithAPartitionTableIsRefused) {
  world.superblock = {};
  world.superblock.partition_table = "gpt";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("gpt partition table"));
}

TEST_F(VolumeTest, AReadOnlyVolumeIsRefusedUntilAnotherHostStopsWriting) {
  world.superblock.being_written = true;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("being written by another host"));
  world.superblock.being_written = false;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AnExclusiveVolumeWithoutMmpIsRefusedUnlessFenceIsNone) {
  settings.access = config::Access::Exclusive;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("multi-mount protection"));
  EXPECT_EQ(world.count("mount rw"), 0);
  volume->stop();

  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount rw"), 1);
}

TEST_F(VolumeTest, ATargetWithTlsIsNotDiscoveredInClearText) {
  target->options.tls_psk_file = "/etc/spark-stage/keys/psk";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("discover"), 0);
}

TEST_F(VolumeTest, ALostDevicesMountIsDetachedAndTheVolumeIsRemounted) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_THAT(seen, testing::Contains(State::Lost));
  EXPECT_THAT(seen, testing::Contains(State::Recovering));
  EXPECT_EQ(world.count("detach"), 1);
  EXPECT_EQ(world.count("mount ro"), 2);
  EXPECT_EQ(world.mounts.size(), 1u);
}

TEST_F(VolumeTest, ADeadMountStaysWhileItsTargetIsUnreachable) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.target_up = false;
  world.lose_device();
  const auto asked = world.count("discover");
  ASSERT_TRUE(run_until([&] { return world.count("discover") > asked + 3; }));
  EXPECT_EQ(world.mounts.size(), 1u) << "what writes to the mount point would write to the root disk";
  EXPECT_EQ(world.count("detach"), 0);
  EXPECT_EQ(volume->status().state, State::Lost);
  EXPECT_THAT(reason(), HasSubstr("target rose unreachable"));
  world.target_up = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.mounts.size(), 1u);
}

TEST_F(VolumeTest, ADeadMountStaysUntilTheNewDeviceHasTheRightFileSystem) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.lose_device();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_EQ(world.count("detach"), 0);
  world.superblock.uuid = kUuid;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.mounts.size(), 1u);
  EXPECT_EQ(world.mounts.front().device_number, world.block->device_number);
}

TEST_F(VolumeTest, AnotherFileSystemAfterALossIsRefused) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.lose_device();
  EXPECT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumeTest, AMissingNamespaceIsMountedAsSoonAsItAppears) {
  timings.first_retry = timings.longest_retry = std::chrono::hours(1);
  world.plug_in(kNqn);
  const auto block = world.block;
  world.block.reset();
  start();
  ASSERT_TRUE(becomes(State::Waiting) &&
              run_until([&] { return volume->status().next_attempt.has_value(); }));
  volume->namespace_added();  // another namespace
  context.restart();
  context.run_for(std::chrono::milliseconds(5));
  EXPECT_EQ(volume->status().state, State::Waiting);
  world.block = block;
  volume->namespace_added();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, ANewNamespaceDoesNotRetryARefusedVolume) {
  timings.refused_retry = std::chrono::hours(1);
  world.superblock = {};
  start();
  ASSERT_TRUE(becomes(State::Refused) &&
              run_until([&] { return volume->status().next_attempt.has_value(); }));
  const auto asked = world.count("superblock");
  volume->namespace_added();
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(world.count("superblock"), asked);
}

TEST_F(VolumeTest, AnUnreadableMountTableChangesNothing) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mount_table_readable = false;
  world.mounts.clear();
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(volume->status().state, State::Ready);
}

TEST_F(VolumeTest, ATargetThatIsReachedAgainIsReportedToItsOtherVolumesOnce) {
  world.target_up = false;
  start();
  ASSERT_TRUE(becomes(State::Waiting));
  ASSERT_TRUE(run_until([&] { return world.count("discover") >= 2; }));
  EXPECT_EQ(world.count("target is back"), 0);
  world.target_up = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("target is back"), 1);
}

TEST_F(VolumeTest, AMountThatCouldNotBeAnnouncedIsReadyWithAWarning) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  world.mount_warning = "/mnt/data/.spark-stage is not a folder of this file system";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().warnings.at(Warning::Unannounced), world.mount_warning);
  world.mount_warning.clear();
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return world.count("mount rw") == 2; }));
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->status().warnings.contains(Warning::Unannounced));
}

}  // namespace
}  // namespace spark::volumes
