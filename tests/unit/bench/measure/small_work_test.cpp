#include "bench/measure/small_work.hpp"

#include <gtest/gtest.h>

#include <set>

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

TEST(SmallWork, EachOfSeveralHostsStartsElsewhereInTheSameSample) {
  SmallWork work = made_up_work(2, 1000);
  for (int i = 0; i < 9; ++i) {
    work.files.push_back({"/set/" + std::to_string(i), 1000});
    work.copy.folders.push_back({"/set/class" + std::to_string(i), 9000});
  }
  std::set<std::string> files, folders;
  for (unsigned host = 0; host < 3; ++host) {
    SmallWork own = work;
    start_at(own, {host, 3});
    EXPECT_EQ(own.sizes, work.sizes) << "laid out alike on all hosts";
    EXPECT_EQ(own.files.size(), 9u);
    for (std::size_t i = 0; i < 3; ++i) files.insert(own.files[i].path);
    folders.insert(own.copy.folders.front().path);
  }
  EXPECT_EQ(files.size(), 9u);
  EXPECT_EQ(folders.size(), 3u);
}

}  // namespace
}  // namespace spark::bench
