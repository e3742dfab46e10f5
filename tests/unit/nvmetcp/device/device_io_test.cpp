#include "nvmetcp/device/device_io.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.hpp"

namespace spark::nvmetcp {
namespace {

class DeviceIo : public testing::Test {
 protected:
  void count(const std::string& disk, unsigned reads, unsigned writes) {
    const auto folder = folder_ / ("sys/class/block/" + disk);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat") << "    " << reads << "  0  8  9  " << writes << "  0  8  9  1  5  6\n";
  }
  std::optional<std::uint64_t> completed() {
    return completed_io(SystemRoot{folder_ / "."}, "nvme1n2", {"nvme3", "nvme12"});
  }

  test::TempFolder folder_;
};

TEST_F(DeviceIo, GrowsWithEachReadAndWriteThatEnds) {
  count("nvme1n2", 3, 4);
  EXPECT_EQ(completed(), 7U);
  count("nvme1n2", 3, 5);
  EXPECT_EQ(completed(), 8U);
}

TEST_F(DeviceIo, CountersOfHiddenPathsAreIncluded) {
  count("nvme1n2", 0, 0);
  count("nvme1c3n2", 1, 2);
  count("nvme1c12n2", 10, 20);
  EXPECT_EQ(completed(), 33U);
}

TEST_F(DeviceIo, IsUnknownForADiskThatIsGone) {
  EXPECT_EQ(completed(), std::nullopt);
}

}  // namespace
}  // namespace spark::nvmetcp
