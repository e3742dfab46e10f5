#include "nvmetcp/device/device_owner.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

// As in sysfs: a number links to the device's folder, which is inside its disk's or its subsystem's.
TEST(OwnerOfDevice, IsTheNamespaceOfADiskAndOfItsPartitions) {
  test::FakeSysfs sysfs;
  sysfs.write("sys/subsystems/1/subsysnqn", "raid5-data");
  sysfs.write("sys/subsystems/1/nvme1n2/nsid", "2");
  sysfs.write("sys/subsystems/1/nvme1n2/nvme1n2p1/size", "2048");
  const auto numbers = sysfs.root() / "sys/dev/block";
  std::filesystem::create_directories(numbers);
  const auto disk = sysfs.root() / "sys/subsystems/1/nvme1n2";
  std::filesystem::create_directory_symlink(disk, numbers / "259:4");
  std::filesystem::create_directory_symlink(disk / "nvme1n2p1", numbers / "259:5");
  for (const unsigned minor : {4U, 5U}) {
    const auto owner = owner_of_device(sysfs.root(), makedev(259, minor));
    ASSERT_TRUE(owner) << minor;
    EXPECT_EQ(owner->subsystem, "raid5-data");
    EXPECT_EQ(owner->nsid, 2U);
    EXPECT_EQ(owner->is_partition, minor == 5U);
  }
  EXPECT_EQ(owner_of_device(sysfs.root(), makedev(259, 6)).error().kind, Errc::NotFound);
}

// As while the kernel removes a controller.
TEST(OwnerOfDevice, IsNeitherGoneNorAnotherIfItCannotBeRead) {
  test::FakeSysfs sysfs;
  const auto subsystem = sysfs.root() / "sys/subsystems/1", numbers = sysfs.root() / "sys/dev/block";
  std::filesystem::create_directories(subsystem / "subsysnqn");  // a read fails
  std::filesystem::create_directories(subsystem / "nvme1n1");
  std::filesystem::create_directories(numbers);
  std::filesystem::create_directory_symlink(subsystem / "nvme1n1", numbers / "259:4");
  EXPECT_EQ(owner_of_device(sysfs.root(), makedev(259, 4)).error().kind, Errc::Failed);
}

}  // namespace
}  // namespace spark::nvmetcp
