// A read-only volume, and changes by another host below it.
#include <gmock/gmock.h>

#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

class ReaderTest : public VolumeTest {
 protected:
  ReaderTest() { world.superblock.stamp = 1; }
  void let_a_writer_open_it() {
    world.superblock.being_written = true;
    world.superblock.stamp = 2;
  }
  void let_the_writer_close_it() {
    world.superblock.being_written = false;
    world.superblock.stamp = 3;
  }
};

TEST_F(ReaderTest, AWriterThatAppearsAfterTheMountMarksTheVolumeWhichStaysReady) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->status().mounted().foreign_writes);
  let_a_writer_open_it();
  ASSERT_TRUE(run_until([&] { return volume->status().mounted().foreign_writes; }));
  ASSERT_TRUE(run_until([&] { return reason().find("being written by another host") == 0; }));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_EQ(world.count("unmount"), 0);
}

// The kernel would show the older mount's state at the new one too.
TEST_F(ReaderTest, ANewStateIsNotMountedBesideAnOlderMount) {
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1, false};
  world.superblock.stamp = 2;
  world.superblock.is_claimed = true;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("perhaps in a state that is older than another host's writes"));
  world.superblock.stamp = 1;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(ReaderTest, TheVolumeIsRemountedAndUnmarkedOnceTheWriterClosesIt) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  let_a_writer_open_it();
  ASSERT_TRUE(run_until([&] { return volume->status().mounted().foreign_writes; }));
  let_the_writer_close_it();
  ASSERT_TRUE(run_until([&] { return world.count("mount ro") == 2; }));
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->status().mounted().foreign_writes);
  EXPECT_EQ(reason(), "");
  EXPECT_TRUE(volume->status().history.outages().empty());
}

TEST_F(ReaderTest, AVolumeIsSettlingWhileItIsRemountedForNewerContents) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->is_settling());
  bool was_settling = false;
  world.while_mounting = [&] { was_settling = volume->is_settling(); };
  let_the_writer_close_it();
  ASSERT_TRUE(run_until([&] { return world.count("mount ro") == 2; }));
  EXPECT_TRUE(was_settling);
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->is_settling());
}

TEST_F(ReaderTest, AnOutdatedMountInUseStaysMountedAndMarked) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  let_the_writer_close_it();
  ASSERT_TRUE(run_until([&] { return reason().find("python3") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_TRUE(volume->status().mounted().foreign_writes);
  world.unmount_error.reset();
  EXPECT_TRUE(run_until([&] { return world.count("mount ro") == 2; }));
}

TEST_F(ReaderTest, RemountingAnOutdatedMountInUseBacksOffAndIsLoggedOnce) {
  timings.first_leave = timings.longest_leave = Duration(60'000);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.while_unmounting = [&] {
    const std::string pid = std::to_string(world.count("unmount"));
    world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by sh (pid " + pid + ")", "end it first"};
  };
  seen.clear();
  let_the_writer_close_it();
  ASSERT_TRUE(run_until([&] { return world.count("unmount") == 1; }));
  ASSERT_TRUE(run_until([&, probes = world.count("probe")] { return world.count("probe") > probes + 50; }));
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(seen.size(), 1U) << "changes that are logged";
  EXPECT_THAT(reason(), HasSubstr("sh (pid 1)"));
}

TEST_F(ReaderTest, WritesWhileTheDaemonWasStoppedAreDetected) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1};
  world.superblock.stamp = 5;
  start();
  EXPECT_TRUE(run_until([&] { return world.count("mount ro") == 1; }));
}

TEST_F(ReaderTest, WritesWhileTheDaemonAndTheLinkWereDownAreDetected) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1};
  world.set_link("connecting");
  start();
  ASSERT_TRUE(becomes(State::Stalled));
  world.superblock.stamp = 5;
  world.set_link("live");
  EXPECT_TRUE(run_until([&] { return world.count("mount ro") == 1; }));
}

}  // namespace
}  // namespace spark::volumes
