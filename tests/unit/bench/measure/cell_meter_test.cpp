#include "bench/measure/cell_meter.hpp"

#include <gmock/gmock.h>

#include "bench/files/file_reader.hpp"
#include "bench/measure/bench_target.hpp"
#include "bench/record/scenario.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

const StopFlag kRunsOn = false;

// 64 files of a dataset on a path that counts as NFS, read 16 at a time. Its device never counts a byte.
class CellMeter : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_small_files(disk / "set", std::vector<Bytes>(64, 4096), 0));
    fs::create_directories(disk / "root/sys/class/block/disk0");
    write_text(disk / "root/sys/class/block/disk0/stat", "1 0 800 0 0 0 0 0 0 0 0\n");
    options.runtime = std::chrono::seconds(0);  // one pass
    options.root = SystemRoot(disk / "root");
    auto inspected = BenchTarget::inspect({"nfs", disk.path()}, SystemRoot(), kRunsOn);
    ASSERT_TRUE(inspected) << inspected.error().message();
    target.emplace(std::move(*inspected));
    target->record.storage = {};
    target->record.storage.kind = PathKind::Nas;
    target->small_files = small_file_names(disk / "set", 64);
    target->window = 16;
  }

  Cell measured() {
    Cell cell;
    cell.path = "nfs";
    cell.scenario = "smallfiles";
    cell.round = 3;
    cell.order = 7;
    const FioSetup fio;
    const Bench bench{options, fio, kRunsOn, nullptr, nullptr};
    measure_cell(bench, **find_scenario("smallfiles"), *target, cell, [](double) {});
    return cell;
  }

  const DiskFolder disk;
  BenchOptions options;
  std::optional<BenchTarget> target;
};

TEST_F(CellMeter, AReadOfADatasetsCachedFilesOnNfsIsRepeatedOnceWithEviction) {
  target->record.storage.origin.device = "disk0";
  const Cell cell = measured();
  EXPECT_EQ(cell.ios, 16u) << "of the second read alone";
  EXPECT_EQ(sample_count(cell.bins), 16u);
  EXPECT_EQ(cell.order, 7u);
  EXPECT_EQ(target->files_read, 32u);
  EXPECT_TRUE(target->may_be_cached);
  EXPECT_EQ(measured().ios, 16u);
  EXPECT_EQ(target->files_read, 48u) << "later cells evict at once";
}

TEST_F(CellMeter, AReadThatNoCounterProvesIsNotRepeated) {
  EXPECT_EQ(measured().ios, 16u);
  EXPECT_EQ(target->files_read, 16u);
}

}  // namespace
}  // namespace spark::bench
