// A file system that must not be written: it has recorded errors, or it is not the one mounted before.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

TEST_F(VolumeTest, AFileSystemWithRecordedErrorsIsNotMountedWritableUntilRepaired) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  world.superblock.damage = "errors are recorded in its ext4 (3 since the last e2fsck)";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("mount rw"), 0);
  EXPECT_THAT(reason(), HasSubstr("e2fsck -f /dev/nvme7n1"));
  world.superblock.damage.clear();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AWritableVolumeThatTurnedReadOnlyAfterAnErrorIsRefused) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.damage = "errors are recorded in its ext4 (3 since the last e2fsck)";
  world.mounts.front().super_options = "ro";
  ASSERT_TRUE(becomes(State::Refused));
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world.count("mount rw"), 1);
  EXPECT_EQ(volume->status().state, State::Refused);
}

TEST_F(VolumeTest, AReadOnlyVolumeWithRecordedErrorsIsReadyWithAWarning) {
  world.superblock.damage = "errors are recorded in its ext4 (3 since the last e2fsck)";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(all_warnings(volume->status()), testing::Contains(HasSubstr("e2fsck")));
  world.superblock.damage.clear();
  EXPECT_TRUE(run_until([&] { return all_warnings(volume->status()).empty(); }));
}

TEST_F(VolumeTest, WritingStopsIfTheFileSystemUnderAWritableMountWasReplaced) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
  ASSERT_TRUE(run_until([&] { return world.count("cut off") == 1; }));
  EXPECT_LT(std::ranges::find(world.touched, "stop writing"), std::ranges::find(world.touched, "cut off"));
  EXPECT_EQ(world.count("unmount"), 0) << "with its device there, it would write the superblock";
  EXPECT_TRUE(run_until([&] { return reason().find("99999999") != std::string::npos; }));
  world.superblock.uuid = kUuid;
  EXPECT_TRUE(becomes(State::Ready));
}

class ReplacedFileSystemTest : public VolumeTest {
 protected:
  ReplacedFileSystemTest() {
    settings.access = config::Access::Exclusive;
    settings.fence = config::Fence::None;
    world.shared = true;
  }
  void exchange() {
    start();
    ASSERT_TRUE(becomes(State::Ready));
    world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
    ASSERT_TRUE(run_until([&] {
      return reason().find("other volumes use the connection") != std::string::npos;
    })) << reason();
    EXPECT_EQ(volume->status().state, State::Refused);
  }
};

TEST_F(ReplacedFileSystemTest, TheMountIsKeptWhileOtherVolumesNeedTheConnection) {
  exchange();
  const auto down = await(context, volume->requests().ask_down()).value_or(Result<>());
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().message(), HasSubstr("take the other volumes of subsystem raid5-data down"));
  EXPECT_EQ(world.count("unmount") + world.count("cut off"), 0);
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(ReplacedFileSystemTest, TheConnectionIsCutOffOnceNoOtherVolumeNeedsIt) {
  exchange();
  world.shared = false;
  ASSERT_TRUE(run_until([&] { return world.count("cut off") == 1; }));
  world.superblock.uuid = kUuid;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(ReplacedFileSystemTest, ADiskOfTheConnectionThatAPersonMountsMeanwhileIsNotLostWithIt) {
  world.while_disconnecting = [&] {
    world.owners[55] = kNqn;
    world.mount("/mnt/other", false, 55, "/dev/nvme7n2");
    world.while_disconnecting = [] {};
  };
  exchange();
  world.shared = false;
  ASSERT_TRUE(run_until([&] {
    return std::ranges::any_of(reasons, [](const std::string& one) {
      return one.find("its /dev/nvme7n2 is still in use - unmount it there first") != std::string::npos;
    });
  })) << reason();
  EXPECT_EQ(world.count("cut off"), 1);
  EXPECT_FALSE(world.controllers.empty());
  world.mounts.pop_back();
  ASSERT_TRUE(run_until([&] { return world.count("cut off") == 2; }));
  world.superblock.uuid = kUuid;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(ReplacedFileSystemTest, AMountInUseWhoseOwnFileSystemIsBackWaitsForItsUsersAlone) {
  exchange();
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  world.superblock.uuid = kUuid;
  ASSERT_TRUE(run_until([&] { return world.count("unmount") > 2; })) << reason();
  EXPECT_THAT(reason(), HasSubstr("in use by python3 (pid 7)"));
  world.unmount_error.reset();
  EXPECT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("cut off"), 0);
}

TEST_F(ReplacedFileSystemTest, TheVolumeIsRemountedOnceItsOwnFileSystemIsBack) {
  exchange();
  world.superblock.uuid = kUuid;
  EXPECT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("cut off"), 0);
}

TEST_F(VolumeTest, UnmountingABrokenMountInUseBacksOffAndIsLoggedOnceUntilAnOperatorAsks) {
  timings.first_leave = timings.longest_leave = Duration(60'000);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.while_unmounting = [&] {
    const std::string pid = std::to_string(world.count("unmount"));
    world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by sh (pid " + pid + ")", "end it first"};
  };
  world.shut_down = true;
  ASSERT_TRUE(run_until([&] { return reason().find("sh (pid 1)") != std::string::npos; }));
  seen.clear();
  ASSERT_TRUE(run_until([&, looks = world.guarded.size()] { return world.guarded.size() > looks + 20; }));
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_TRUE(seen.empty()) << "changes that are logged";
  volume->requests().ask_up();
  EXPECT_TRUE(run_until([&] { return world.count("unmount") == 2; }));
  world.while_unmounting = [] {};
  world.unmount_error.reset();
  volume->requests().ask_up();
  ASSERT_TRUE(run_until([&] { return world.count("unmount") == 3; }));
}

// `tune2fs -U` on the mounted file system.
TEST_F(VolumeTest, AUuidThatWasChangedWhileMountedIsAWarningAndStopsNothing) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.uuid = world.mounted_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  ASSERT_TRUE(run_until([&] { return volume->status().warnings.contains(Warning::FilesystemId); }));
  EXPECT_THAT(volume->status().warnings.at(Warning::FilesystemId), HasSubstr("set `uuid: 99999999"));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_EQ(world.count("stop writing") + world.count("disconnect"), 0);
}

TEST_F(VolumeTest, AUuidThatWasChangedWhileMountedIsStillWatchedAfterARestart) {
  settings.access = config::Access::Exclusive;
  world.reservations.offers = true;
  settings.nvme->filesystem_uuid = world.mounted_uuid = kUuid;
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  world.superblock.uuid = world.mounted_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  ASSERT_TRUE(run_until([&] { return volume->status().warnings.contains(Warning::FilesystemId); }));
  volume->stop();
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_THAT(volume->status().warnings.at(Warning::FilesystemId), HasSubstr("set `uuid: 99999999"));
  world.reservations.state.registrants = {{"another host", 99, true}};
  EXPECT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(VolumeTest, AUuidThatWasChangedWhileMountedIsSetWithoutARemount) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  settings.nvme->filesystem_uuid = world.mounted_uuid = kUuid;
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  world.superblock.uuid = world.mounted_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  ASSERT_TRUE(run_until([&] { return volume->status().warnings.contains(Warning::FilesystemId); }));
  EXPECT_EQ(volume->status().filesystem_uuid, world.mounted_uuid) << "a reload compares it";
  config::Volume followed = volume->settings();
  followed.nvme->filesystem_uuid = world.mounted_uuid;
  ASSERT_TRUE(await(context, volume->set_live(followed, volume->target())).value());
  EXPECT_FALSE(volume->status().warnings.contains(Warning::FilesystemId));
}

TEST_F(VolumeTest, APublishedVolumeStaysSoAfterItsChangedUuidWasConfigured) {
  settings.access = config::Access::Exclusive;
  const std::string changed = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  settings.nvme->filesystem_uuid = world.superblock.uuid = world.mounted_uuid = changed;
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1, true};
  world.records[Record::Renamed] = {{"mount", "1"}, {"from", kUuid}, {"to", changed}};
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.pinned->uuid, changed);
  EXPECT_TRUE(world.pinned->is_published);
  EXPECT_EQ(world.count("mount rw") + world.count("unmount"), 0);
}

TEST_F(VolumeTest, WritingStopsIfTheFileSystemUnderAnAdoptedMountWasReplaced) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1};
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.mounted_uuid = kUuid;
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(VolumeTest, AnExchangedDiskIsNoticedByTheConfiguredFileSystemIfNothingIsRecorded) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  settings.nvme->filesystem_uuid = world.mounted_uuid = kUuid;
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 1);
}

TEST_F(VolumeTest, AMountOfAFileSystemOtherThanConfiguredIsRefusedButKeepsWriting) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  settings.nvme->filesystem_uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  world.mounted_uuid = kUuid;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("stop writing"), 0);
}

}  // namespace
}  // namespace spark::volumes
