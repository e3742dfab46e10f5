// An exclusive volume that is published, mounted read-only like by its readers, and made writable again.
#include <gmock/gmock.h>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using mounts::AfterPublish;
using testing::HasSubstr;

class PublishTest : public VolumeTest {
 protected:
  PublishTest() {
    settings.access = config::Access::Exclusive;
    world.reservations.offers = true;
    world.superblock.stamp = 1;
  }
  Result<mounts::Published> publish(AfterPublish then = AfterPublish::ReadOnly) {
    return await(context, volume->publication().publish(then)).value_or(fail(Errc::Failed, "it never ended"));
  }
  Result<> make_writable() {
    return await(context, volume->publication().make_writable())
        .value_or(fail(Errc::Failed, "it never ended"));
  }
  void start_published() {
    start();
    ASSERT_TRUE(becomes(State::Ready));
    ASSERT_TRUE(publish());
  }
  // Waits for this many more health checks.
  void look(std::ptrdiff_t times = 3) {
    const auto before = world.count("probe");
    ASSERT_TRUE(run_until([&] { return world.count("probe") >= before + times; }));
  }
};

TEST_F(PublishTest, APublishedVolumeStaysReadyAndReadOnlyUntilItIsMadeWritable) {
  start_published();
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_TRUE(is_reader(volume->context()));
  EXPECT_THAT(reason(),
              HasSubstr("published as generation 1: read-only until `spark-stage volumes up datasets`"));
  EXPECT_EQ(world.count("unmount"), 0);
  ASSERT_TRUE(make_writable());
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_EQ(reason(), "");
  EXPECT_FALSE(is_reader(volume->context()));
  EXPECT_FALSE(volume->status().mounted().foreign_writes) << "its own writing was taken for another's";
  EXPECT_TRUE(volume->status().history.outages().empty());
}

// Its attempt mounts it read-only, and is not disturbed.
TEST_F(PublishTest, AnUpWhileAPublishedVolumeIsMountedMakesItWritableOnceItIs) {
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1, true};
  std::optional<Result<>> up;
  world.while_mounting = [&, is_asked = false]() mutable {
    if (std::exchange(is_asked, true)) return;
    auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.publication().make_writable();
    };
    boost::asio::co_spawn(context, ask(*volume, up), boost::asio::detached);
  };
  start();
  ASSERT_TRUE(run_until([&] { return up.has_value(); }));
  ASSERT_TRUE(*up) << up->error().message();
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_FALSE(is_reader(volume->context()));
  EXPECT_FALSE(world.pinned->is_published);
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Lost)));
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(PublishTest, IsGivenUpIfTheTargetGoesSilentBeforeItIsFlushed) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.flush_waits = true;
  world.set_link("connecting");
  const auto published = publish();
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message(), HasSubstr("volume datasets is stalled"));
  EXPECT_EQ(world.count("publish"), 0);
  world.flush_waits = false;
}

// It records a publication that a crash kept from being recorded, but not one that a writer has ended.
TEST_F(PublishTest, AReadOnlyMountByHandIsPublishedOnlyIfNoWriterHasOpenedItSince) {
  for (const bool is_written_since : {true, false}) {
    world = FakeWorld();
    world.superblock.type = "ext4";
    world.superblock.uuid = world.mounted_uuid = kUuid;
    world.reservations.offers = true;
    world.offer(kNqn, "10.0.0.5", 4420);
    world.plug_in(kNqn);
    world.mount("/mnt/data", true, world.block->device_number);
    world.mounts.back().super_options = "ro";
    world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 0, false};
    world.published = mounts::Published{1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
    world.is_written_since = is_written_since;
    start();
    EXPECT_TRUE(becomes(is_written_since ? State::Refused : State::Ready)) << reason();
    EXPECT_EQ(world.pinned->is_published, !is_written_since);
    volume->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(20));
  }
}

// A worker that outlived its daemon published it; what it left on the disk was recorded nowhere.
TEST_F(PublishTest, APublicationFoundAfterARestartIsMountedAnewAsAnotherHostMayHaveWrittenSince) {
  world.mounted_uuid = kUuid;
  world.superblock.stamp = 3;
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mounts.back().super_options = "ro";
  world.pinned = FilesystemIdentity{"ext4", kUuid, 0, "", 1, false};
  world.published = mounts::Published{1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
  start();
  ASSERT_TRUE(run_until([&] { return world.count("mount closed") == 1; })) << reason();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("unmount"), 1);
}

TEST_F(PublishTest, APublishedVolumeSaysWhyItIsReadOnlyEvenIfItsGenerationIsNotKnown) {
  start_published();
  volume->stop();
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  world.mount_answers = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(reason(), "published: read-only until `spark-stage volumes up datasets`");
}

// Each remount for writing makes the kernel write the host's present name into the MMP block.
TEST_F(PublishTest, AHostWithANewNameIsNoOtherHost) {
  world.superblock.has_mmp = true;
  world.superblock.mmp_node = FakeWorld::kNode;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  look();
  world.while_publishing = [&] { world.superblock.mmp_node = "renamed"; };
  ASSERT_TRUE(publish(AfterPublish::Writable));
  look();
  EXPECT_EQ(volume->status().state, State::Ready) << reason();
  EXPECT_EQ(world.count("stop writing"), 0);
}

TEST_F(PublishTest, AProbeThatWasReadBeforeThisHostsOwnRemountIsNotComparedWithTheNextOne) {
  world.superblock.mounts = 5;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  look();
  world.probe_takes = 200;
  const auto probes = world.count("probe");
  ASSERT_TRUE(run_until([&] { return world.count("probe") > probes; }));
  world.while_publishing = [&] { ++world.superblock.mounts; };
  ASSERT_TRUE(publish(AfterPublish::Writable));
  world.silent_probes = 1;  // the target may have been restarted meanwhile
  look();
  EXPECT_EQ(volume->status().state, State::Ready) << reason();
  EXPECT_EQ(world.count("stop writing"), 0);
}

// The kernel makes the file system read-only before the mount, as after an error.
TEST_F(PublishTest, AMountWhoseRemountIsInProgressIsNotBroken) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const CheckedMountPtr mount = volume->context().checked;
  world.mounts.front().super_options = "ro";
  mount->is_changing_writing = true;
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  mount->is_changing_writing = false;
  EXPECT_TRUE(becomes(State::Lost)) << "no remount is in progress";
}

TEST_F(PublishTest, APublishedVolumeIsNotPublishedAgainUntilItWasMadeWritable) {
  start_published();
  EXPECT_EQ(publish()->generation, 1u) << "nothing was written since";
  EXPECT_EQ(world.count("publish"), 1);
  ASSERT_TRUE(make_writable());
  EXPECT_EQ(publish()->generation, 2u);
}

TEST_F(PublishTest, ThenWriteLeavesTheVolumeWritable) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(publish(AfterPublish::Writable));
  look();
  EXPECT_EQ(reason(), "");
  EXPECT_FALSE(is_published(volume->context()));
  ASSERT_TRUE(publish());
  ASSERT_TRUE(publish(AfterPublish::Writable));
  EXPECT_EQ(world.count("make writable"), 1) << "published already: only opened";
}

TEST_F(PublishTest, AVolumeWithAWritingProgramIsNotPublishedAndStaysWritable) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.publish_error = Error{Errc::Refused, "in use by python3 (pid 7)", "let it close its files"};
  const auto refused = publish();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_FALSE(is_published(volume->context()));
}

TEST_F(PublishTest, OnlyAReadyExclusiveVolumeCanBePublished) {
  world.target_up = false;
  start();
  ASSERT_TRUE(becomes(State::Waiting));
  EXPECT_EQ(publish().error().kind, Errc::Unavailable);
  settings.access = config::Access::ReadOnly;
  volume->stop();
  world.target_up = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(publish().error().kind, Errc::Refused);
  EXPECT_THAT(publish().error().message(), HasSubstr("this host only reads it"));
}

TEST_F(PublishTest, APublishedVolumeStaysReadOnlyAcrossADaemonRestartAndAReboot) {
  start_published();
  volume->stop();
  world.touched.clear();
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, testing::Not(testing::Contains(testing::StartsWith("mount"))));
  volume->stop();
  world.lose_device();
  world.mounts.clear();
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount closed"), 1) << "its own journal has to be there when it is writable again";
  EXPECT_EQ(world.count("mount rw"), 0);
}

TEST_F(PublishTest, APublishedVolumeThatIsDownCanBeBroughtUpWritable) {
  start_published();
  ASSERT_TRUE(await(context, volume->requests().ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  ASSERT_TRUE(make_writable());
  volume->requests().ask_up();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount rw"), 2);
  EXPECT_EQ(world.count("mount closed"), 0);
}

TEST_F(PublishTest, WritesOfAnotherHostToAPublishedVolumeAreDetected) {
  start_published();
  look();
  world.superblock.being_written = true;
  ++world.superblock.stamp;
  ASSERT_TRUE(run_until([&] { return volume->status().mounted().foreign_writes; }));
  EXPECT_EQ(world.count("stop writing"), 0) << "programs that read it need no errors";
  EXPECT_EQ(make_writable().error().kind, Errc::Refused);
}

TEST_F(PublishTest, MakingAVolumeWritableDetectsUnnoticedWritesOfAnotherHost) {
  timings.probe = timings.probe_reader = std::chrono::hours(1);
  start_published();
  ++world.superblock.stamp;
  const auto refused = make_writable();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("another host has written it since"));
  EXPECT_EQ(world.count("make writable"), 0);
}

TEST_F(PublishTest, AVolumeReservedByAnotherHostIsNotMadeWritable) {
  start_published();
  sim::SimulatedReservations other{world.reservations, "99999999-2222-3333-4444-555555555555"};
  ASSERT_EQ(nvmetcp::take_reservation(other, {"99999999-2222-3333-4444-555555555555", 99})->hold,
            nvmetcp::Hold::Ours);
  look();
  EXPECT_FALSE(volume->status().fence.reservation);
  EXPECT_EQ(volume->status().state, State::Ready) << "it can still be read";
  EXPECT_EQ(make_writable().error().kind, Errc::Refused);
  EXPECT_EQ(world.count("make writable"), 0);
}

TEST_F(PublishTest, AFenceLostDuringPublishingStopsWriting) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.while_publishing = [this] {
    sim::SimulatedReservations other{world.reservations, "99999999-2222-3333-4444-555555555555"};
    (void)nvmetcp::take_reservation(other, {"99999999-2222-3333-4444-555555555555", 99});
  };
  world.publish_error = Error{Errc::Failed, "Input/output error", ""};
  world.publish_takes = 20;
  EXPECT_FALSE(publish());
  EXPECT_TRUE(run_until([&] { return world.count("stop writing") == 1; }));
}

TEST_F(PublishTest, AWriterThatCannotGoOnIsPublished) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.not_writable = "no answer";
  const auto published = publish(AfterPublish::Writable);
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message(),
              HasSubstr("is published as generation 1, and stays read-only: no answer - `sudo spark-stage "
                        "volumes up datasets` makes it writable"));
  look();
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_THAT(reason(), HasSubstr("published as generation 1"));
  EXPECT_TRUE(make_writable());
}

// Another mount hides it by then, so that its worker can't go on writing.
TEST_F(PublishTest, AVolumeThatIsClosedAlthoughPublishingFailedIsNotStoppedForAnotherWriter) {
  world.superblock.has_mmp = true;
  world.superblock.mmp_node = FakeWorld::kNode;
  world.reservations.offers = false;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  look();
  world.publish_error = Error{Errc::Unavailable, "making it writable: it is not mounted there", ""};
  world.while_publishing = [&] {
    world.mounts.front().options = "ro,noatime";
    world.mounts.front().super_options = "ro";
    ++world.superblock.stamp;
    world.mount("/mnt/data", false, 7, "tmpfs", "tmpfs");
  };
  EXPECT_FALSE(publish(AfterPublish::Writable));
  world.superblock.mmp_node = "spark2";
  ASSERT_TRUE(becomes(State::Refused));
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world.count("stop writing"), 0);
  world.mounts.pop_back();
  EXPECT_TRUE(run_until([&] { return world.count("mount rw") == 2; })) << "what it shows may be outdated";
}

TEST_F(PublishTest, WithoutReservationsItIsPublishedUnderMultiMountProtection) {
  world.superblock.has_mmp = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  look();
  world.reservations.offers = false;
  ASSERT_TRUE(run_until([&] { return !volume->status().fence.reservation; }));
  ASSERT_TRUE(publish());
  EXPECT_TRUE(world.published_alone);
}

TEST_F(PublishTest, AVolumeIsNotTakenDownUnderAPublication) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  std::optional<Result<>> down;
  world.publish_takes = 20;
  world.while_publishing = [&] {
    auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.requests().ask_down();
    };
    boost::asio::co_spawn(context, ask(*volume, down), boost::asio::detached);
  };
  EXPECT_TRUE(publish());
  ASSERT_TRUE(down && !*down);
  EXPECT_THAT(down->error().message(), HasSubstr("is being published, or made writable again - try again"));
}

TEST_F(PublishTest, AReaderReportsTheGenerationItShows) {
  settings.access = config::Access::ReadOnly;
  world.published = mounts::Published{7, "spark2", "2026-11-22T05:00:00Z"};
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(volume->status().mounted().published);
  EXPECT_EQ(volume->status().mounted().published->generation, 7u);
  world.published->generation = 8;
  ++world.superblock.stamp;
  ASSERT_TRUE(run_until([&] { return volume->status().mounted().published->generation == 8; }));
  EXPECT_TRUE(run_until([&] { return world.count("mount ro") == 2; }));
}

}  // namespace
}  // namespace spark::volumes
