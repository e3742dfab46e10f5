#include "bench/facts/temperature.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

class Temperature : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(sys / path).parent_path());
    write_text(sys / path, text);
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories(fs::path(sys / path).parent_path());
    fs::create_symlink(sys / target, sys / path);
  }
  std::optional<DriveTemperature> of(const std::string& device, PathKind kind = PathKind::Local) const {
    StorageFacts storage;
    storage.kind = kind;
    storage.origin.device = device;
    return drive_temperature({sys.path()}, storage);
  }
  const DiskFolder sys;
};

TEST_F(Temperature, APartitionHasTheTemperatureOfItsNvmeController) {
  put("devices/nvme0/hwmon3/temp1_input", "52850\n");
  put("devices/nvme0/hwmon3/temp1_max", "81850\n");
  put("devices/nvme0/nvme0n1/nvme0n1p2/partition", "2\n");
  link("devices/nvme0/nvme0n1/device", "devices/nvme0");
  link("sys/class/block/nvme0n1p2", "devices/nvme0/nvme0n1/nvme0n1p2");
  const auto temperature = of("nvme0n1p2");
  ASSERT_TRUE(temperature);
  EXPECT_DOUBLE_EQ(temperature->celsius, 52.85);
  EXPECT_DOUBLE_EQ(temperature->limit, 81.85);
  EXPECT_FALSE(temperature->is_hot());
  EXPECT_FALSE(of("nvme0n1p2", PathKind::RemoteBlock)) << "the target's drive is not this host's";
}

TEST_F(Temperature, ADriveSetHasTheTemperatureOfItsHottestDrive) {
  for (const auto& [drive, degrees] : {std::pair{"sda", "41000"}, std::pair{"sdb", "83000"}}) {
    const std::string name = drive;
    put("devices/" + name + "/hwmon/hwmon1/temp1_input", degrees);
    put("devices/" + name + "/hwmon/hwmon1/temp1_max", "70000");
    put("devices/" + name + "/block/" + name + "/size", "1");
    link("devices/" + name + "/block/" + name + "/device", "devices/" + name);
    link("sys/class/block/" + name, "devices/" + name + "/block/" + name);
    link("devices/md0/slaves/" + name, "devices/" + name + "/block/" + name);
  }
  link("sys/class/block/md0", "devices/md0");
  const auto temperature = of("md0");
  ASSERT_TRUE(temperature);
  EXPECT_DOUBLE_EQ(temperature->celsius, 83);
  EXPECT_TRUE(temperature->is_hot());
}

TEST_F(Temperature, WithNativeMultipathTheSensorIsFoundBelowTheSubsystem) {
  put("devices/nvme-subsys0/nvme0/hwmon1/temp1_input", "60000");
  put("devices/nvme-subsys0/nvme0n1/size", "1");
  link("devices/nvme-subsys0/nvme0n1/device", "devices/nvme-subsys0");
  link("sys/class/block/nvme0n1", "devices/nvme-subsys0/nvme0n1");
  ASSERT_TRUE(of("nvme0n1"));
  EXPECT_DOUBLE_EQ(of("nvme0n1")->celsius, 60);
  EXPECT_FALSE(of("nvme0n1")->is_hot()) << "its limit is unknown";
}

TEST_F(Temperature, IsUnknownWithoutASensor) {
  put("devices/vda/size", "1");
  link("sys/class/block/vda", "devices/vda");
  EXPECT_FALSE(of("vda"));
  EXPECT_FALSE(of("none"));
}

}  // namespace
}  // namespace spark::bench
