#include "base/network/nics.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark {
namespace {

// A card of a DGX Spark: one half of a port.
void add_card(test::FakeSysfs& files, const std::string& name, const std::string& pci,
              const std::string& port) {
  const std::string device = "sys/devices/" + pci + "/", folder = "sys/class/net/" + name + "/";
  files.write(device + "current_link_speed", "32.0 GT/s PCIe");
  files.write(device + "current_link_width", "4");
  files.write(device + "vendor", "0x15b3");
  files.write(device + "device", "0x1021");
  files.write(folder + "operstate", "up");
  files.write(folder + "speed", "200000");
  files.write(folder + "phys_port_name", port);
  std::filesystem::create_directory_symlink("../../../devices/" + pci, files.root() / (folder + "device"));
}

TEST(Nics, TheOtherHalfOfAPortIsFound) {
  test::FakeSysfs files;
  add_card(files, "enp1s0f0np0", "0000:01:00.0", "p0");
  add_card(files, "enp1s0f1np1", "0000:01:00.1", "p1");
  add_card(files, "enP2p1s0f0np0", "0002:01:00.0", "p0");
  const auto nics = read_nics(files.root());
  const Nic* nic = find_nic(nics, "enp1s0f0np0");
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->pci, "0000:01:00.0");
  EXPECT_EQ(nic->pcie_megabits / 1000, 126u);
  ASSERT_NE(other_half(nics, *nic), nullptr);
  EXPECT_EQ(other_half(nics, *nic)->name, "enP2p1s0f0np0");
  EXPECT_EQ(other_half(nics, *find_nic(nics, "enp1s0f1np1")), nullptr);
}

TEST(Nics, APortWithLanesForItsSpeedHasNoOtherHalf) {
  test::FakeSysfs files;
  add_card(files, "a", "0000:01:00.0", "p0");
  add_card(files, "b", "0002:01:00.0", "p0");
  files.write("sys/devices/0000:01:00.0/current_link_width", "16");
  const auto nics = read_nics(files.root());
  EXPECT_EQ(other_half(nics, *find_nic(nics, "a")), nullptr);
}

TEST(Nics, RdmaCounts) {
  test::FakeSysfs files;
  add_card(files, "a", "0000:01:00.0", "p0");
  files.write("sys/class/net/a/statistics/rx_bytes", "1000");
  files.write("sys/class/net/a/statistics/tx_bytes", "2000");
  files.write("sys/devices/0000:01:00.0/infiniband/rocep1s0f0/ports/1/counters/port_rcv_data", "25");
  files.write("sys/devices/0000:01:00.0/infiniband/rocep1s0f0/ports/1/counters/port_xmit_data", "50");
  EXPECT_EQ(read_nics(files.root()).front().received, 1000u) << "its driver may count all traffic there";
  std::filesystem::create_directory_symlink("../../bus/pci/drivers/mlx5_core",
                                            files.root() / "sys/devices/0000:01:00.0/driver");
  EXPECT_EQ(read_nics(files.root()).front().received, 1100u);
  EXPECT_EQ(read_nics(files.root()).front().sent, 2200u);
}

TEST(Nics, ATunnelTellsNoStateAndIsUpWithItsCarrier) {
  test::FakeSysfs files;
  for (const auto& [name, carrier] : {std::pair("tun0", "0"), std::pair("wg0", "1")}) {
    const std::string folder = "sys/class/net/" + std::string(name) + "/";
    files.write(folder + "operstate", "unknown");
    files.write(folder + "carrier", carrier);
  }
  const auto nics = read_nics(files.root());
  EXPECT_TRUE(find_nic(nics, "wg0")->is_up);
  EXPECT_FALSE(find_nic(nics, "tun0")->is_up);
}

TEST(Nics, SpeedsHaveThreeDigitsAtMost) {
  EXPECT_EQ(format_bits(200e9), "200 Gb/s");
  EXPECT_EQ(format_bits(2.5e9), "2.5 Gb/s");
  EXPECT_EQ(format_bits(93.44e9), "93.4 Gb/s");
  EXPECT_EQ(format_bits(999.7e6), "1 Gb/s");
  EXPECT_EQ(format_bits(950e6), "950 Mb/s");
  EXPECT_EQ(format_bits(13.04e6), "13 Mb/s");
  EXPECT_EQ(format_bits(0), "0 Mb/s");
}

}  // namespace
}  // namespace spark
