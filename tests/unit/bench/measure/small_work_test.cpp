#include "bench/measure/small_work.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

BenchOptions small_files_on(const DiskFolder& disk) {
  BenchOptions options;
  options.paths = {{"local", disk.path()}};
  options.size = 32 * kMiB;
  options.runtime = std::chrono::seconds(1);
  options.rounds = options.max_rounds = 1;
  options.scenarios = {"smallfiles"};
  return options;
}

TEST(SmallWork, WithoutADatasetTheFilesHaveTheSizeThatTheJobWasSeenToRead) {
  const DiskFolder disk;
  const StopFlag go_on = false;
  BenchOptions options = small_files_on(disk);
  options.asked.demand.mean_file = 10'000;
  const auto record = run(options, {}, go_on);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(mean_small_file(record->paths[0]), 10'000u);
  EXPECT_GE(record->paths[0].small_files, 400u) << "as many bytes as of larger files";
}

TEST(SmallWork, FilesOfAnUnknownOrALargeSizeAreReplacedByTheUsualOnes) {
  const DiskFolder disk;
  BenchOptions options = small_files_on(disk);
  EXPECT_EQ(small_file_size(options.asked), kSmallFileSize);
  options.asked.demand.mean_file = 2 * kMiB;
  EXPECT_EQ(small_file_size(options.asked), kSmallFileSize);
}

}  // namespace
}  // namespace spark::bench
