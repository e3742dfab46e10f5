#include "daemon/service/release.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/fake_seams.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using volumes::FakeWorld;

class ReleaseTest : public testing::Test {
 protected:
  ReleaseTest() {
    volume.name = "datasets";
    volume.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    volume.mount = "/mnt/data";
    world.plug_in("raid5-data");
    world.mount("/mnt/data", true, world.block->device_number);
  }
  // The volume's own export, as it appears in the mount table.
  void mount_nfs() {
    volume.nvme.reset();
    volume.nfs = config::NfsSource{"10.0.0.9", "/data"};
    world.mounts.clear();
    world.mount("/mnt/data", false, 7, "10.0.0.9:/data", "nfs4");
  }

  std::string release() { return release({volume}).front(); }

  // Releases several volumes of one subsystem concurrently.
  std::vector<std::string> release(const std::vector<config::Volume>& volumes) {
    const auto seams = volumes::fake_seams(world);
    boost::asio::io_context context;
    SharedLink link{volumes.size()};
    std::vector<std::string> said(volumes.size());
    auto go = [&](const config::Volume& one, std::string& into) -> boost::asio::awaitable<void> {
      const ReleaseTimings timings{Duration(20), Duration(1)};
      into = co_await release_volume(seams, one, link, clock, timings, why);
    };
    for (std::size_t i = 0; i < volumes.size(); ++i)
      boost::asio::co_spawn(context, go(volumes[i], said[i]), boost::asio::detached);
    context.run();
    return said;
  }
  config::Volume unmounted_neighbour() const {
    config::Volume other = volume;
    other.name = "logs";
    other.nvme->nsid = 2;
    other.mount = "/mnt/logs";
    return other;
  }

  FakeWorld world;
  ReleaseReason why = ReleaseReason::Shutdown;
  config::Volume volume;
  SystemClock clock;
};

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
  EXPECT_TRUE(world.records[volumes::Record::Held].empty());
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

TEST_F(ReleaseTest, WhatAnotherHostHasTakenOverIsNotFlushedOverItsNewerState) {
  volume.access = config::Access::Exclusive;
  world.mounts.clear();
  world.mount("/mnt/data", false, world.block->device_number);
  world.reservations.offers = true;
  world.reservations.state.registrants = {{"99999999-2222-3333-4444-555555555555", 12, true}};
  why = ReleaseReason::Asked;
  EXPECT_THAT(release(), HasSubstr("another host has taken it over"));
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

// Two targets that offer a subsystem of the same NQN; one of them is the volume's.
class ReleaseOfTwoTargetsTest : public ReleaseTest {
 protected:
  ReleaseOfTwoTargetsTest() {
    config.targets["rose"] = target("rose", "10.0.0.5");
    config.targets["spare"] = target("spare", FakeWorld::kOtherAddress);
    config.volumes = {volume};
    other = world.plug_in_other("raid5-data", false);
  }
  static config::Target target(const std::string& name, const std::string& address) {
    config::Target made;
    made.name = name;
    made.portals = {{address, 4420}};
    return made;
  }
  // Concurrently, as in the daemon.
  std::vector<std::string> release_all() {
    boost::asio::io_context context;
    const auto links = links_of(config, config.volumes);
    std::vector<std::string> said(config.volumes.size());
    auto go = [&](std::size_t index) -> boost::asio::awaitable<void> {
      const auto seams = volumes::fake_seams(world);
      know_controllers(seams, config, config.volumes[index]);
      const ReleaseTimings timings{Duration(20), Duration(1)};
      said[index] = co_await release_volume(seams, config.volumes[index], *links[index], clock, timings, why);
    };
    for (std::size_t i = 0; i < said.size(); ++i)
      boost::asio::co_spawn(context, go(i), boost::asio::detached);
    context.run();
    return said;
  }

  config::Config config;
  std::string other;  // the other target's controller
};

TEST_F(ReleaseOfTwoTargetsTest, TheOtherTargetsControllerOfTheSameNqnStays) {
  EXPECT_THAT(release_all(), ElementsAre("volume datasets: unmounted, nvme7 disconnected"));
  ASSERT_EQ(world.controllers.size(), 1u);
  EXPECT_EQ(world.controllers[0].name, other);
}

TEST_F(ReleaseOfTwoTargetsTest, AnotherTargetsLiveControllerDoesNotCountAsALinkToASilentTarget) {
  world.controllers[0].state = "connecting";
  EXPECT_THAT(release_all(), ElementsAre(HasSubstr("does not answer: released by force")));
  EXPECT_THAT(world.touched, ElementsAre("cut off"));
  ASSERT_EQ(world.controllers.size(), 1u);
  EXPECT_EQ(world.controllers[0].name, other);
}

TEST_F(ReleaseOfTwoTargetsTest, EachVolumeDisconnectsOnlyItsOwnTarget) {
  config.volumes.push_back(unmounted_neighbour());
  config.volumes.back().nvme->target = "spare";
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  EXPECT_THAT(release_all(), ElementsAre(HasSubstr("in use by python3 (pid 7)"),
                                         "volume logs: not mounted, " + other + " disconnected"));
  ASSERT_EQ(world.controllers.size(), 1u);
  EXPECT_EQ(world.controllers[0].name, "nvme7");
}

TEST_F(ReleaseOfTwoTargetsTest, AConnectionMadeToAHostNameIsFoundByItsOwner) {
  config.targets["rose"].portals = {{"nas.lan", 4420}};
  world.controllers[0].owner = "spark-stage";
  EXPECT_THAT(release_all(), ElementsAre("volume datasets: unmounted, nvme7 disconnected"));
  EXPECT_EQ(world.controllers.size(), 1u);
}

TEST_F(ReleaseOfTwoTargetsTest, AConnectionToAnotherTargetIsNotMistakenForOneToAHostName) {
  config.targets["rose"].portals = {{"nas.lan", 4420}};
  config.volumes.push_back(unmounted_neighbour());
  config.volumes.back().nvme->target = "spare";
  for (auto& controller : world.controllers) controller.owner = "spark-stage";
  EXPECT_THAT(release_all(), ElementsAre("volume datasets: unmounted, nvme7 disconnected",
                                         "volume logs: not mounted, " + other + " disconnected"));
}

TEST_F(ReleaseOfTwoTargetsTest, TargetsThatShareAnAddressShareAConnection) {
  config.targets["again"] = target("again", "10.0.0.5");
  config.volumes.push_back(unmounted_neighbour());
  config.volumes.back().nvme->target = "again";
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  release_all();
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST(NotInConfig, IncludesOwnConnectionsMountedOrNotAndNoOthers) {
  test::FakeSysfs sysfs;
  const SystemClock clock;
  const auto plug_in = [&](const std::string& number, const std::string& owner) {
    sysfs.add_controller(test::tcp_controller("nvme" + number, "subsystem-" + number));
    // As in sysfs: the disk's number links to its folder, which is inside the subsystem's folder.
    const std::string folder = "sys/subsystems/" + number;
    sysfs.write(folder + "/subsysnqn", "subsystem-" + number);
    sysfs.write(folder + "/disk/size", "2048");
    const auto numbers = sysfs.root() / "sys/dev/block";
    std::filesystem::create_directories(numbers);
    std::filesystem::create_directory_symlink(sysfs.root() / (folder + "/disk"), numbers / ("259:" + number));
    if (!owner.empty()) sysfs.write("run/nvme/registry/nvme" + number + "/owner", owner);
  };
  for (const char* number : {"1", "2", "3"}) plug_in(number, "spark-stage");
  plug_in("4", "");
  plug_in("5", "stas");
  sysfs.write(
      "proc/self/mountinfo",
      "50 1 259:1 / /mnt/known ro - ext4 /dev/nvme1n1 ro\n51 1 259:2 / /mnt/left rw - ext4 /dev/nvme2n1 rw\n"
      "52 1 259:4 / /mnt/persons rw - ext4 /dev/nvme4n1 rw\n53 1 259:5 / /mnt/others rw - xfs /dev/nvme5n1 "
      "rw");
  config::Config config;
  config.volumes.resize(1);
  config.volumes[0].nvme = config::NvmeSource{"rose", "subsystem-1", 1, "", ""};
  config.volumes[0].mount = "/mnt/known";
  HostSnapshot snapshot(clock, sysfs.root());
  std::vector<std::string> found;
  for (const auto& volume : not_in_config(config, snapshot))
    found.push_back(volume.name + " of " + volume.nvme->subsystem);
  EXPECT_THAT(found, ElementsAre("/mnt/left of subsystem-2", "subsystem-3 of subsystem-3"));
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
