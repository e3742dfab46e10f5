#include "nvmetcp/sysfs/sysfs.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using test::tcp_controller;

constexpr const char* kData = "raid5-data";
constexpr std::uint64_t kGibSectors = 2097152;

TEST(Sysfs, WithoutAnyDriverThereAreNoControllers) {
  const test::FakeSysfs sysfs;
  EXPECT_TRUE(list_controllers(sysfs.root()).value().empty());
}

TEST(Sysfs, AControllerIsReadWithItsPortalAndHost) {
  test::FakeSysfs sysfs;
  Controller made = tcp_controller("nvme3", kData, "connecting");
  made.interface = "enp1s0f1np1";
  sysfs.add_controller(made);
  // 6.1 and later add the local address while the link is up.
  sysfs.write("sys/class/nvme/nvme3/address",
              "traddr=192.168.0.100,trsvcid=4420,host_iface=enp1s0f1np1,src_addr=192.168.0.7");
  const auto all = list_controllers(sysfs.root()).value();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "nvme3");
  EXPECT_EQ(all[0].subsystem, kData);
  EXPECT_EQ(all[0].portal, (Portal{"192.168.0.100", 4420}));
  EXPECT_EQ(all[0].interface, "enp1s0f1np1");
  EXPECT_EQ(all[0].host_nqn, made.host_nqn);
  EXPECT_EQ(all[0].host_id, made.host_id);
  EXPECT_FALSE(all[0].is_live());
  EXPECT_FALSE(all[0].is_going());
}

TEST(Sysfs, IPv6PortalsAndLocalDrivesAreRead) {
  test::FakeSysfs sysfs;
  Controller six = tcp_controller("nvme1", kData);
  six.portal = {"fd00::5", 4421};
  sysfs.add_controller(six);
  Controller local = tcp_controller("nvme0", "nqn.2014-08.com.vendor:drive");
  local.transport = "pcie";
  sysfs.add_controller(local);
  const auto all = list_controllers(sysfs.root()).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].transport, "pcie");
  EXPECT_TRUE(all[0].portal.address.empty());
  EXPECT_EQ(all[1].portal, (Portal{"fd00::5", 4421}));
}

TEST(Sysfs, AControllerThatVanishesDuringTheReadIsOmitted) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData));
  sysfs.add_controller(tcp_controller("nvme2", kData));
  sysfs.remove("sys/class/nvme/nvme1/subsysnqn");
  const auto all = list_controllers(sysfs.root()).value();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "nvme2");
}

TEST(ControllerList, RereadsTheStateAndNoticesAReusedName) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme3", kData));
  ControllerList list(sysfs.root());
  EXPECT_TRUE(list.look().value().at(0).is_live());
  sysfs.write("sys/class/nvme/nvme3/state", "connecting");
  EXPECT_EQ(list.look().value().at(0).state, "connecting");
  EXPECT_EQ(list.look().value().at(0).subsystem, kData);

  std::filesystem::rename(sysfs.root() / "sys/class/nvme/nvme3", sysfs.root() / "sys/gone");
  EXPECT_TRUE(list.look().value().empty());
  sysfs.add_controller(tcp_controller("nvme3", "another-subsystem"));
  EXPECT_EQ(list.look().value().at(0).subsystem, "another-subsystem");
}

TEST(ControllerList, RereadsANewControllerUntilItIsLive) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme3", kData, "new"));
  sysfs.write("sys/class/nvme/nvme3/subsysnqn", "");
  ControllerList list(sysfs.root());
  EXPECT_EQ(list.look().value().at(0).subsystem, "");
  sysfs.write("sys/class/nvme/nvme3/subsysnqn", kData);
  sysfs.write("sys/class/nvme/nvme3/state", "live");
  EXPECT_EQ(list.look().value().at(0).subsystem, kData);
}

TEST(Sysfs, ControllersAreChosenBySubsystemAndHost) {
  Controller other_host = tcp_controller("nvme2", kData);
  other_host.host_nqn = "nqn.other";
  const std::vector<Controller> all = {tcp_controller("nvme1", kData), other_host,
                                       tcp_controller("nvme3", "raid5-data2")};
  EXPECT_EQ(controllers_of(all, kData, "").size(), 2U);
  EXPECT_EQ(controllers_of(all, kData, "nqn.other").at(0).name, "nvme2");
}

// 6.1 and 7.2 with native multipath: the head below the subsystem, a hidden node below each controller.
TEST(Sysfs, ANamespaceIsItsMultipathHead) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme2", kData));
  sysfs.add_node("nvme2", "nvme1c2n1", 1);
  sysfs.add_head("nvme1n1", 1, "259:3", kGibSectors);
  sysfs.write("sys/class/block/nvme1n1/uuid", "0f3c2b1a-0000-4000-8000-000000000001");
  sysfs.write("sys/class/block/nvme1n1/nguid", "0f3c2b1a-0000-4000-8000-0000000000ff");
  sysfs.write("sys/class/block/nvme1n1/eui", "00 25 38 5a 91 b0 0f 01");
  const Namespace found = find_namespace(sysfs.root(), kData, 1).value();
  EXPECT_EQ(found.device, "nvme1n1");
  EXPECT_EQ(found.nsid, 1U);
  EXPECT_EQ(found.bytes, kGiB);
  EXPECT_EQ(found.device_number, makedev(259, 3));
  EXPECT_EQ(found.uuid, "0f3c2b1a-0000-4000-8000-000000000001");
  EXPECT_EQ(found.eui, "0025385a91b00f01");
}

TEST(Sysfs, WithoutMultipathTheNamespaceIsBelowTheController) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme4", kData));
  sysfs.add_node("nvme4", "nvme4n1", 7);
  sysfs.add_head("nvme4n1", 7, "259:9", kGibSectors);
  EXPECT_EQ(find_namespace(sysfs.root(), kData, 7).value().device, "nvme4n1");
}

TEST(Sysfs, AnNguidShownAsUuidByTheKernelIsIgnored) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme4", kData));
  sysfs.add_node("nvme4", "nvme4n1", 1);
  sysfs.add_head("nvme4n1", 1, "259:9", kGibSectors);
  sysfs.write("sys/class/block/nvme4n1/uuid", "0f3c2b1a-0000-4000-8000-0000000000ff");
  sysfs.write("sys/class/block/nvme4n1/nguid", "0f3c2b1a-0000-4000-8000-0000000000ff");
  const Namespace found = find_namespace(sysfs.root(), kData, 1).value();
  EXPECT_TRUE(found.uuid.empty());
  EXPECT_EQ(found.nguid, "0f3c2b1a-0000-4000-8000-0000000000ff");
}

// The kernel gave up and we reconnected: the dead mount keeps nvme2n1 and its numbers in use.
//   nvme-subsys2: nvme2n1 (no path, held by the dead mount), nvme2n2 <- nvme3 (live)
TEST(Sysfs, AHeadWithALivePathIsPreferredToOneKeptByADeadMount) {
  test::FakeSysfs sysfs;
  sysfs.add_head("nvme2n1", 1, "259:5", kGibSectors);
  sysfs.add_controller(tcp_controller("nvme3", kData));
  sysfs.add_node("nvme3", "nvme2c3n2", 1);
  sysfs.add_head("nvme2n2", 1, "259:6", kGibSectors);
  EXPECT_EQ(find_namespace(sysfs.root(), kData, 1).value().device, "nvme2n2");
}

TEST(Sysfs, ADeletingControllersNamespaceIsNotFound) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData, "deleting (no IO)"));
  sysfs.add_node("nvme1", "nvme1c1n1", 1);
  sysfs.add_head("nvme1n1", 1, "259:5", kGibSectors);
  const auto found = find_namespace(sysfs.root(), kData, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Errc::NotFound);
}

TEST(Sysfs, ALivePathIsPreferredToOneThatReconnects) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData, "connecting"));
  sysfs.add_node("nvme1", "nvme1n1", 1);
  sysfs.add_head("nvme1n1", 1, "259:5", kGibSectors);
  sysfs.add_controller(tcp_controller("nvme2", kData));
  sysfs.add_node("nvme2", "nvme2n1", 1);
  sysfs.add_head("nvme2n1", 1, "259:6", kGibSectors);
  EXPECT_EQ(find_namespace(sysfs.root(), kData, 1).value().device, "nvme2n1");
}

TEST(Sysfs, AnotherNamespaceOfTheSubsystemIsNamedInTheHint) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData));
  sysfs.add_node("nvme1", "nvme1c1n1", 2);
  sysfs.add_head("nvme1n1", 2, "259:5", kGibSectors);
  const auto found = find_namespace(sysfs.root(), kData, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().hint, "the target offers namespace 2");
}

TEST(Sysfs, AMissingHeadIsNotFound) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData));
  sysfs.add_node("nvme1", "nvme1c1n1", 1);
  EXPECT_EQ(find_namespace(sysfs.root(), kData, 1).error().kind, Errc::NotFound);
}

TEST(NamespaceList, IsReadAgainOnceTheFoundDeviceIsGoneOrReplaced) {
  test::FakeSysfs sysfs;
  sysfs.add_controller(tcp_controller("nvme1", kData));
  sysfs.add_node("nvme1", "nvme0c1n1", 1);
  sysfs.add_head("nvme0n1", 1, "259:5", kGibSectors);
  NamespaceList list(sysfs.root());
  const auto find = [&] { return list.find(list_controllers(sysfs.root()).value(), kData, 1); };
  EXPECT_EQ(find()->device, "nvme0n1");

  sysfs.remove("sys/class/block/nvme0n1");
  EXPECT_EQ(find().error().kind, Errc::NotFound) << "the disk went away";
  sysfs.add_head("nvme0n1", 1, "259:6", kGibSectors);
  EXPECT_EQ(find()->device_number, makedev(259, 6)) << "another disk has its name";

  sysfs.remove("sys/class/nvme/nvme1/nvme0c1n1");
  EXPECT_EQ(find().error().kind, Errc::NotFound) << "disabled at the target";
  sysfs.add_node("nvme1", "nvme2c1n1", 1);
  sysfs.add_head("nvme2n1", 1, "259:7", kGibSectors);
  EXPECT_EQ(find()->device, "nvme2n1");

  sysfs.write("sys/class/nvme/nvme1/state", "deleting");
  EXPECT_EQ(find().error().kind, Errc::NotFound);
}

}  // namespace
}  // namespace spark::nvmetcp
