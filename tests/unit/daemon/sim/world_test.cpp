#include "daemon/sim/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spark::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kNqn[] = "raid5-data";
const nvmetcp::Portal kFirst{"10.0.0.5", 4420}, kSecond{"10.0.1.5", 4420};

class WorldTest : public testing::Test {
 protected:
  WorldTest() {
    config::Target rose;
    rose.name = "rose";
    rose.portals = {kFirst, kSecond};
    config::Volume datasets;
    datasets.name = "datasets";
    datasets.nvme = config::NvmeSource{"rose", kNqn, 1, "", ""};
    datasets.mount = "/mnt/data";
    world.add(rose);
    world.add(datasets);
    world.on_uevent([this](const Uevent& event) { told.push_back(event.action + " " + event.device); });
  }
  TargetChange target(Reach state, const std::string& address = "") {
    TargetChange change;
    change.target = "rose";
    change.state = state;
    change.address = address;
    return change;
  }
  VolumeChange volume() {
    VolumeChange change;
    change.volume = "datasets";
    return change;
  }
  std::string connect(const nvmetcp::Portal& portal) {
    const auto connection = world.connect(kNqn, portal);
    return connection ? connection->controller : connection.error().what;
  }
  std::vector<std::string> states() {
    std::vector<std::string> all;
    for (const auto& controller : world.controllers()) all.push_back(controller.state);
    return all;
  }
  Result<nvmetcp::Namespace> block() { return world.find_namespace(world.controllers(), 1); }
  void mount(bool read_only = true) {
    mounts::MountRequest request;
    request.source = "/dev/" + block()->device;
    request.target = "/mnt/data";
    request.type = "ext4";
    request.read_only = read_only;
    world.mount(request);
  }
  Storage& storage() { return world.targets().storage_of("datasets"); }

  World world;
  std::vector<std::string> told;
};

TEST_F(WorldTest, ANamespaceAppearsWithItsFirstPathAndDisappearsWithItsLast) {
  EXPECT_FALSE(block());
  EXPECT_EQ(connect(kFirst), "nvme-sim1");
  EXPECT_EQ(connect(kSecond), "nvme-sim2");
  ASSERT_TRUE(block());
  EXPECT_EQ(block()->device, "nvme-sim1n1");
  EXPECT_EQ(world.subsystem_of(block()->device_number), kNqn);
  EXPECT_EQ(world.disconnect("nvme-sim1"), Change::Done);
  EXPECT_TRUE(block());
  EXPECT_EQ(world.disconnect("nvme-sim2"), Change::Done);
  EXPECT_FALSE(block());
  EXPECT_EQ(world.disconnect("nvme-sim2"), Change::AlreadyThere);
}

TEST_F(WorldTest, AnExistingConnectionIsTakenOver) {
  connect(kFirst);
  EXPECT_EQ(world.connect(kNqn, kFirst)->change, Change::AlreadyThere);
  EXPECT_EQ(world.controllers().size(), 1u);
}

TEST_F(WorldTest, ADownPathReconnectsWhileTheOtherStaysLive) {
  connect(kFirst);
  connect(kSecond);
  world.apply(target(Reach::Down, "10.0.1.5"));
  EXPECT_THAT(states(), ElementsAre("live", "connecting"));
  EXPECT_TRUE(world.is_live(storage()));
  world.apply(target(Reach::Down));
  EXPECT_THAT(states(), ElementsAre("connecting", "connecting"));
  EXPECT_FALSE(world.is_live(storage()));
  EXPECT_TRUE(block()) << "the kernel keeps the disk while it reconnects";
  EXPECT_EQ(world.connect(kNqn, kFirst).error().kind, Errc::Unavailable) << "a controller stands for it";
  world.apply(target(Reach::Up));
  EXPECT_THAT(states(), ElementsAre("live", "live"));
}

TEST_F(WorldTest, ADownTargetTimesOutAndARefusingTargetIsUnavailable) {
  world.apply(target(Reach::Down));
  EXPECT_EQ(world.targets().discover(kFirst).error().kind, Errc::TimedOut);
  world.apply(target(Reach::Refusing));
  EXPECT_EQ(world.targets().discover(kFirst).error().kind, Errc::Unavailable);
  EXPECT_EQ(world.connect(kNqn, kFirst).error().kind, Errc::Unavailable);
}

TEST_F(WorldTest, ALostDeviceLeavesADeadMount) {
  connect(kFirst);
  mount();
  const dev_t before = block()->device_number;
  TargetChange lost;
  lost.target = "rose";
  lost.removes_controllers = true;
  world.apply(lost);
  EXPECT_FALSE(block());
  ASSERT_EQ(world.mounts().size(), 1u);
  EXPECT_EQ(world.mounts().front().device_number, before);
  EXPECT_EQ(world.subsystem_of(before).error().kind, Errc::NotFound);
  EXPECT_EQ(world.mounted_at("/mnt/data"), nullptr);
  connect(kFirst);
  EXPECT_NE(block()->device_number, before) << "to the kernel it is another disk";
}

TEST_F(WorldTest, AVolumeNoLongerOfferedDisappearsFromTheLogWithItsControllers) {
  connect(kFirst);
  world.connect(nvmetcp::kDiscoveryNqn, kFirst).value();
  told.clear();
  VolumeChange change = volume();
  change.offered = false;
  world.apply(change);
  EXPECT_THAT(world.targets().discover(kFirst)->entries, IsEmpty());
  ASSERT_EQ(world.controllers().size(), 1u);
  EXPECT_TRUE(world.controllers().front().is_discovery);
  EXPECT_THAT(told, ElementsAre("change nvme-sim1", "change nvme-sim2"));
  EXPECT_EQ(world.connect(kNqn, kFirst).error().kind, Errc::NotFound);
}

TEST_F(WorldTest, TheDiscoveryLogListsEveryPortal) {
  const auto log = world.targets().discover(kFirst);
  ASSERT_TRUE(log);
  ASSERT_EQ(log->entries.size(), 2u);
  EXPECT_EQ(log->entries[0].portal, kFirst);
  EXPECT_EQ(log->entries[1].portal, kSecond);
}

TEST_F(WorldTest, AHostNameAlwaysResolvesToTheSameReservedAddress) {
  const nvmetcp::Portal named = Targets::resolve({"rose.example", 4420});
  EXPECT_EQ(named, Targets::resolve({"rose.example", 4420}));
  EXPECT_TRUE(named.address.starts_with("198.18."));
  EXPECT_EQ(Targets::resolve(kFirst), kFirst);
}

TEST_F(WorldTest, AWriterIsVisibleInTheSuperblockUntilItCloses) {
  connect(kFirst);
  const auto stamp = superblock_of(storage()).stamp;
  VolumeChange change = volume();
  change.mmp = change.reservations = true;
  change.writer = "spark2";
  world.apply(change);
  EXPECT_TRUE(superblock_of(storage()).being_written);
  EXPECT_EQ(superblock_of(storage()).mmp_node, "spark2");
  ASSERT_NE(storage().reservations.holder(), nullptr);
  EXPECT_EQ(storage().reservations.holder()->host_id, uuid_of("host spark2"));
  change.writer = "";
  world.apply(change);
  EXPECT_FALSE(superblock_of(storage()).being_written);
  EXPECT_NE(superblock_of(storage()).stamp, stamp);
  EXPECT_EQ(storage().reservations.holder(), nullptr);
}

TEST_F(WorldTest, AWritableMountIsMarkedOpenUntilItIsUnmounted) {
  connect(kFirst);
  mount(false);
  EXPECT_TRUE(superblock_of(storage()).being_written);
  world.unmount("/mnt/data");
  EXPECT_FALSE(superblock_of(storage()).being_written);
  EXPECT_THAT(world.mounts(), IsEmpty());
}

TEST_F(WorldTest, UnmountingAShutDownFileSystemDoesNotCloseIt) {
  connect(kFirst);
  mount(false);
  VolumeChange change = volume();
  change.mount_end = MountEnd::ShutDown;
  world.apply(change);
  world.unmount("/mnt/data");
  EXPECT_TRUE(superblock_of(storage()).being_written);
  EXPECT_FALSE(storage().is_shut_down) << "of the mount, which is gone";
}

TEST_F(WorldTest, UuidsAreTheSameInEveryRun) {
  EXPECT_EQ(uuid_of("host spark2"), uuid_of("host spark2"));
  EXPECT_NE(uuid_of("host spark2"), uuid_of("host spark3"));
  EXPECT_EQ(uuid_of("x").size(), 36u);
}

}  // namespace
}  // namespace spark::sim
