#include "bench/measure/cell_meter.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "bench/files/file_reader.hpp"
#include "bench/measure/bench_target.hpp"
#include "bench/measure/load_work.hpp"
#include "bench/record/scenario.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const StopFlag kRunsOn = false;

// 64 files of a dataset on a path that counts as NFS, read 16 at a time. Its device never counts a byte.
class CellMeter : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_small_files(disk / "set", std::vector<Bytes>(64, 4096), 0));
    fs::create_directories(disk / "root/sys/class/block/disk0");
    write_text(disk / "root/sys/class/block/disk0/stat", "1 0 800 0 0 0 0 0 0 0 0\n");
    options.runtime = std::chrono::seconds(0);  // one pass
    options.root = SystemRoot{disk / "root"};
    auto inspected = BenchTarget::inspect({"nfs", disk.path()}, SystemRoot(), kRunsOn);
    ASSERT_TRUE(inspected) << inspected.error().message();
    target.emplace(std::move(*inspected));
    target->record.storage = {};
    target->record.storage.kind = PathKind::Nas;
    target->small_files = small_file_names(disk / "set", 64);
    target->window = 16;
  }

  Cell measured(const std::string& scenario = "smallfiles") {
    Cell cell;
    cell.path = "nfs";
    cell.scenario = scenario;
    cell.round = 3;
    cell.order = 7;
    const FioSetup fio;
    const Bench bench{options, fio, stop, nullptr, nullptr};
    measure_cell(bench, **find_scenario(scenario), *target, cell, [](double) {});
    return cell;
  }

  const DiskFolder disk;
  StopFlag stop = false;
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

TEST_F(CellMeter, ALoadedModelGivesItsTimeAndTheFreeMemory) {
  fs::create_directories(disk / "root/proc");
  write_text(disk / "root/proc/meminfo", "MemTotal: 900 kB\nMemFree: 300 kB\n");
  write_text(
      disk / "root/proc/zoneinfo",
      "Node 0, zone      DMA\n  pages free     3840\n  pagesets\n    cpu: 0\n              count:    2\n"
      "              high:     7\n    cpu: 1\n              count:    1\n");
  target->record.storage.kind = PathKind::Local;  // no counter is needed for direct reads
  target->record.files = {{disk / "set/0", 4096}, {disk / "set/1", 4096}};
  const Cell cell = measured("load-direct");
  EXPECT_EQ(cell.bytes, 8192u);
  EXPECT_EQ(cell.ios, 2u);
  EXPECT_GT(cell.seconds, 0);
  ASSERT_TRUE(cell.memory);
  EXPECT_EQ(cell.memory->before, 300 * kKiB + 3 * static_cast<Bytes>(::sysconf(_SC_PAGESIZE)))
      << "with the pages that each CPU keeps at hand";
  EXPECT_THAT(cell.cautions, Contains(HasSubstr("the path holds only 8.19 kB to load, less than --size")));
  EXPECT_THAT(cell.reasons, Contains(HasSubstr("too short to measure")));
}

TEST_F(CellMeter, AModelThatDoesNotFitIntoTheFreeMemoryIsNamed) {
  fs::create_directories(disk / "root/proc");
  write_text(disk / "root/proc/meminfo", "MemTotal: 900 kB\nMemFree: 4 kB\n");
  target->record.files = {{disk / "set/0", 4096}, {disk / "set/1", 4096}};
  const auto is_named = Contains(HasSubstr("did not fit into the free memory (4.10 kB)"));
  EXPECT_THAT(measured("load-mmap").cautions, is_named);
  EXPECT_THAT(measured("load-direct").cautions, Not(is_named)) << "it needs none beside the tensors";
}

TEST_F(CellMeter, ALoadThatTheStorageDidNotServeIsNoResult) {
  ASSERT_TRUE(make_small_files(disk / "model", {64 * kMiB}, 0));
  target->record.files = {{disk / "model/0", 64 * kMiB}};
  options.rate_limit = 256 * kMiB;  // long enough to be valid
  const Cell unproven = measured("load-buffered");
  EXPECT_EQ(unproven.status, CellStatus::Invalid);
  EXPECT_THAT(unproven.reasons, ElementsAre(HasSubstr("not proven to come from the storage")));
  target->record.storage.origin.device = "disk0";
  EXPECT_THAT(measured("load-mmap").reasons, ElementsAre(HasSubstr("not cold")));
  EXPECT_THAT(measured("load-direct").reasons, ElementsAre(HasSubstr("not from the storage")));
}

TEST_F(CellMeter, AnInterruptedLoadIsNoResult) {
  target->record.files = {{disk / "set/0", 4096}};
  stop = true;
  const Cell cell = measured("load-mmap");
  EXPECT_EQ(cell.status, CellStatus::Invalid);
  EXPECT_THAT(cell.reasons, ElementsAre("interrupted"));
}

TEST_F(CellMeter, AHostOfSeveralStartsWithAnotherFile) {
  target->record.files = {{disk / "set/0", 4096}, {disk / "set/1", 4096}};
  options.part = {1, 2};
  const ModelLoading loading = load_work(*target, options, **find_scenario("load-direct"));
  EXPECT_EQ(loading.files.front().path, disk / "set/1");
}

TEST_F(CellMeter, AReadThatNoCounterProvesIsNotRepeated) {
  EXPECT_EQ(measured().ios, 16u);
  EXPECT_EQ(target->files_read, 16u);
}

}  // namespace
}  // namespace spark::bench
