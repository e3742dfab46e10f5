// An operator's `up` while it is not known that the volume is published: a worker outlived its daemon, or the
// publication was not recorded.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

class EndedPublication : public VolumeTest {
 protected:
  EndedPublication() {
    settings.access = config::Access::Exclusive;
    world.reservations.offers = true;
    world.superblock.stamp = 3;
    world.mounted_uuid = kUuid;
    world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1, false};
    world.plug_in(kNqn);
    world.mount("/mnt/data", false, world.block->device_number);
    world.set_link("connecting");
  }
  void start_and_ask_up() {
    start();
    ASSERT_TRUE(becomes(State::Stalled)) << reason();
    ASSERT_TRUE(await(context, volume->publication().make_writable()).value());
  }
  void restart() {
    volume->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(50));
    start();
  }
  void publish_late() {
    world.mounts.back().options = "ro,noatime";
    world.mounts.back().super_options = "ro";
    world.published = mounts::Published{1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
    world.set_link("live");
  }
  bool becomes_writable() {
    return run_until([&] {
      const auto& checked = volume->context().checked;
      return volume->status().state == State::Ready && checked && checked->is_writer;
    });
  }
};

TEST_F(EndedPublication, AWorkerThatOutlivedItsDaemonDoesNotPublishAfterAnUp) {
  start_and_ask_up();
  publish_late();
  ASSERT_TRUE(becomes_writable()) << reason();
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(world.count("mount rw"), 1);
  EXPECT_FALSE(world.pinned->is_published);
}

TEST_F(EndedPublication, AnUpHoldsAlsoAfterAnotherRestart) {
  start_and_ask_up();
  restart();
  ASSERT_TRUE(becomes(State::Stalled)) << reason();
  publish_late();
  ASSERT_TRUE(becomes_writable()) << reason();
  EXPECT_EQ(world.count("unmount"), 1);
}

TEST_F(EndedPublication, AnUpHoldsOnlyUntilTheNextPublication) {
  start_and_ask_up();
  world.set_link("live");
  ASSERT_TRUE(becomes_writable()) << reason();
  ASSERT_TRUE(await(context, volume->publication().publish(mounts::AfterPublish::ReadOnly)).value());
  world.pinned->is_published = false;  // the daemon ended before that was recorded
  world.mounts.back().super_options = "ro";
  restart();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_TRUE(is_published(volume->context()));
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(EndedPublication, AMountThatIsMadeWritableWhileItIsConfirmedIsNotUnmounted) {
  start_and_ask_up();
  publish_late();
  world.while_confirming = [this] { world.mounts.back().options = world.mounts.back().super_options = "rw"; };
  ASSERT_TRUE(becomes_writable()) << reason();
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(EndedPublication, NoRoomInTheStateFolderIsNeeded) {
  start_and_ask_up();
  world.is_state_full = true;
  publish_late();
  EXPECT_TRUE(becomes_writable()) << reason();
}

TEST_F(EndedPublication, ItsUsersAreNamedAndKeepTheMount) {
  start_and_ask_up();
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  publish_late();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("volume datasets is still mounted as it was published: /mnt/data is in use "
                                  "by python3 (pid 7) - end it first"));
  EXPECT_EQ(world.mounts.size(), 1U);
  world.unmount_error.reset();
  EXPECT_TRUE(becomes_writable()) << reason();
}

TEST_F(EndedPublication, WithoutAnUpItStaysPublished) {
  start();
  ASSERT_TRUE(becomes(State::Stalled)) << reason();
  publish_late();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_TRUE(is_published(volume->context()));
}

TEST_F(EndedPublication, AReadOnlyMountThatNobodyPublishedIsNotUnmounted) {
  start_and_ask_up();
  publish_late();
  world.published.reset();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("is mounted read-only already"));
  EXPECT_EQ(world.count("unmount"), 0);
}

// It waits until the attempt in progress has mounted the published state; its successor has read the record
// by then.
TEST_F(EndedPublication, AnUpThatWaitsWhileAReloadReplacesTheVolumeFailsAndRecordsNothing) {
  world.mounts.clear();
  world.pinned->is_published = true;
  world.records[Record::Held] = {{"mount", "of an earlier one"}};
  world.save_takes = 1'000'000;  // the attempt waits, just before its mount
  world.set_link("live");
  start();
  ASSERT_TRUE(run_until([&] { return volume->context().attempts.reads; })) << reason();
  std::optional<Result<>> up;
  auto ask = [](std::shared_ptr<Volume> asked,
                std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked->publication().make_writable();
  };
  boost::asio::co_spawn(context, ask(volume, up), boost::asio::detached);
  context.restart();
  context.run_for(std::chrono::milliseconds(5));
  ASSERT_FALSE(up);
  volume->stop("was replaced by a reload of the configuration");
  ASSERT_TRUE(run_until([&] { return up.has_value(); }));
  ASSERT_FALSE(*up);
  EXPECT_EQ(up->error().kind, Errc::Unavailable);
  EXPECT_TRUE(world.pinned->is_published);
  EXPECT_TRUE(world.records[Record::ToWrite].empty());
  world.save_takes = 0;
}

}  // namespace
}  // namespace spark::volumes
