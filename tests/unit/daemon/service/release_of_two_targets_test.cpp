// Two targets, whose connections look alike.
#include "tests/unit/daemon/service/release_fixture.hpp"

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
      const auto outcome =
          co_await release_volume(seams, config.volumes[index], *links[index], clock, timings, why);
      said[index] = outcome.said;
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

}  // namespace
}  // namespace spark
