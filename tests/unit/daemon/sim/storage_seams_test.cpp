#include "daemon/sim/storage_seams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "daemon/volumes/place.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/run_on.hpp"

namespace spark::sim {
namespace {

using testing::HasSubstr;
using volumes::ReservationAct;

class StorageSeams : public testing::Test {
 protected:
  StorageSeams() {
    config::Target rose;
    rose.name = "rose";
    rose.portals = {{"10.0.0.5", 4420}};
    config::Volume datasets;
    datasets.name = "datasets";
    datasets.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    world.add(rose);
    world.add(datasets);
    world.connect("raid5-data", {"10.0.0.5", 4420}).value();
  }
  Result<volumes::Mounted> mount(bool read_only = true) {
    mounts::MountRequest request;
    request.source = "/dev/" + storage().device;
    request.target = kMount;
    request.type = "ext4";
    request.uuid = storage().uuid;
    request.read_only = read_only;
    volumes::FilesystemIdentity identity;
    identity.uuid = storage().uuid;
    return await(context, mounts.mount(std::move(request), std::move(identity))).value();
  }
  Result<nvmetcp::ReservationState> ask(ReservationAct act) {
    volumes::ReservationRequest request{act, "/dev/" + storage().device, {"raid5-data", 1}};
    return await(context, device.reserve(std::move(request))).value();
  }
  // The simulation looks at the target alone, so that a mount of another world will do.
  volumes::OwnMount own() {
    volumes::FakeWorld other;
    other.plug_in("raid5-data");
    other.mount(kMount, true, other.block->device_number);
    config::Volume datasets;
    datasets.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    datasets.mount = kMount;
    return *volumes::look_at_place(volumes::fake_seams(other), datasets).own;
  }
  void change(const std::function<void(VolumeChange&)>& edit) {
    VolumeChange change;
    change.volume = "datasets";
    edit(change);
    world.apply(change);
  }
  Storage& storage() { return world.targets().storage_of("datasets"); }

  static constexpr char kMount[] = "/mnt/data";
  boost::asio::io_context context{1};
  World world;
  volumes::FakeWorld kept;
  volumes::FakeStore store{kept};
  SystemClock clock;
  SimulatedMounts mounts{world, store, clock, "datasets", Duration(0)};
  SimulatedDevice device{world, "datasets"};
};

TEST_F(StorageSeams, AMountAppearsInTheMountTableAndIsPinned) {
  ASSERT_TRUE(mount());
  const auto& table = mounts.mount_table();
  ASSERT_EQ(table->size(), 1u);
  EXPECT_EQ(table->front().target, kMount);
  EXPECT_TRUE(mounts::is_read_only(table->front()));
  ASSERT_TRUE(kept.pinned);
  EXPECT_EQ(kept.pinned->uuid, storage().uuid);
}

TEST_F(StorageSeams, AHangingMountCompletesWhenMountsWorkAgain) {
  change([](VolumeChange& all) { all.mounts = Calls::Hang; });
  std::optional<Result<volumes::Mounted>> mounted;
  auto keep = [&]() -> boost::asio::awaitable<void> {
    mounts::MountRequest request;
    request.source = "/dev/" + storage().device;
    request.target = kMount;
    request.type = "ext4";
    volumes::FilesystemIdentity nothing;
    mounted.emplace(co_await mounts.mount(std::move(request), std::move(nothing)));
  };
  boost::asio::co_spawn(context, keep(), boost::asio::detached);
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(mounted);
  change([](VolumeChange& all) { all.mounts = Calls::Work; });
  EXPECT_TRUE(run_until(context, [&] { return mounted.has_value(); }));
  EXPECT_TRUE(*mounted);
}

TEST_F(StorageSeams, AFileSystemWithAnUnexpectedUuidIsNotMounted) {
  mounts::MountRequest request;
  request.source = "/dev/" + storage().device;
  request.target = kMount;
  request.type = "ext4";
  request.uuid = uuid_of("another");
  volumes::FilesystemIdentity nothing;
  const auto mounted = await(context, mounts.mount(std::move(request), std::move(nothing))).value();
  ASSERT_FALSE(mounted);
  EXPECT_EQ(mounted.error().kind, Errc::Unavailable);
  EXPECT_TRUE(world.mounts().empty());
}

TEST_F(StorageSeams, AMountInUseIsNotUnmountedUnlessItIsDetached) {
  ASSERT_TRUE(mount());
  change([](VolumeChange& all) { all.users = "python3 (pid 4711)"; });
  EXPECT_EQ(**await(context, mounts.users(kMount)), "python3 (pid 4711)");
  const auto refused = await(context, mounts.unmount(own(), mounts::Unmount::Plain)).value();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("it is in use by python3 (pid 4711)"));
  EXPECT_EQ(**await(context, mounts.unmount(own(), mounts::Unmount::Detach)), "python3 (pid 4711)");
  EXPECT_EQ(**await(context, mounts.unmount(own(), mounts::Unmount::Plain)), "");
}

TEST_F(StorageSeams, EachPublishCountsAGenerationAndIsReadOnlyUntilMadeWritable) {
  ASSERT_TRUE(mount(false));
  for (const std::uint64_t generation : {1, 2}) {
    const auto closed =
        await(context, mounts.publish({own(), "", ""}, mounts::AfterPublish::ReadOnly)).value();
    ASSERT_TRUE(closed) << closed.error().message();
    EXPECT_EQ(closed->published.generation, generation);
    EXPECT_TRUE(mounts::is_read_only(world.mounts().front()));
    EXPECT_FALSE(superblock_of(storage()).being_written);
    EXPECT_TRUE(kept.pinned->is_published);
    ASSERT_TRUE(await(context, mounts.make_writable({own(), "", ""})).value());
    EXPECT_FALSE(mounts::is_read_only(world.mounts().front()));
    EXPECT_FALSE(kept.pinned->is_published);
  }
}

TEST_F(StorageSeams, AProbeHasTheConfiguredLatencyAndNoAnswerIsATimeout) {
  change([](VolumeChange& all) { all.latency = VolumeChange::Latency(Duration(3)); });
  volumes::ProbeRequest request{kMount, "/dev/" + storage().device, std::nullopt};
  EXPECT_EQ((*await(context, device.probe(request)))->superblock.read_us, 3000);
  change([](VolumeChange& all) { all.latency = VolumeChange::Latency(); });
  EXPECT_EQ(await(context, device.probe(request))->error().kind, Errc::TimedOut);
}

TEST_F(StorageSeams, AReservationCanBeHeldTakenAndReleased) {
  EXPECT_EQ(ask(ReservationAct::Hold)->hold, nvmetcp::Hold::Unsupported);
  change([](VolumeChange& all) { all.reservations = true; });
  EXPECT_EQ(ask(ReservationAct::Hold)->hold, nvmetcp::Hold::Ours);
  change([](VolumeChange& all) { all.writer = "spark2"; });
  EXPECT_EQ(ask(ReservationAct::Look)->hold, nvmetcp::Hold::Theirs);
  EXPECT_EQ(ask(ReservationAct::Look)->holder, uuid_of("host spark2"));
  EXPECT_EQ(ask(ReservationAct::Take)->hold, nvmetcp::Hold::Ours);
  EXPECT_EQ(ask(ReservationAct::Release)->hold, nvmetcp::Hold::Free);
}

}  // namespace
}  // namespace spark::sim
