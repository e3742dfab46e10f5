#include <gtest/gtest.h>

#include <fstream>

#include "bench/report/run_folder.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

// A kept run on a dataset of small files that has a copy in the cache.
class BenchReport : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("spark-report-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "other");
    std::ofstream(folder / "other/file") << std::string(700, 'x');
    bench::Record record = bench::sample_record();
    record.asked.dataset = "imagenet";
    record.asked.folder = "/set";
    record.asked.dataset_bytes = 200'000'000;
    record.asked.dataset_files = 20'000;
    record.asked.cache_room = 1'000'000'000;
    record.asked.is_staged = true;
    const auto kept = bench::RunFolder::make(folder / "runs", record.run_id);
    ASSERT_TRUE(kept) << kept.error().message();
    ASSERT_TRUE(kept->write(record));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // The question of the kept run, reported with these options.
  json::object asked(const std::vector<std::string>& options) const {
    Program program;
    std::vector<std::string> words = {
        "bench", "report", "last", "--format", "json", "--runs", (folder / "runs").string()};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(program.run(words), 0) << program.errors();
    const auto record = parse_json_object(program.output());
    const json::object* found = record ? get_object(*record, "asked") : nullptr;
    return found == nullptr ? json::object() : *found;
  }

  std::filesystem::path folder;
};

TEST_F(BenchReport, AnotherDatasetInheritsNothingFromTheDatasetOfTheRun) {
  const json::object size = asked({"--dataset", "1.2TB"});
  EXPECT_EQ(get_string(size, "dataset"), "1.2TB");
  EXPECT_EQ(get_string(size, "dataset_folder"), "");
  EXPECT_EQ(get_int(size, "dataset_bytes"), 1'200'000'000'000);
  EXPECT_EQ(get_int(size, "dataset_files"), 0);
  EXPECT_EQ(get_int(size, "cache_room_bytes"), 0);
  EXPECT_EQ(get_bool(size, "is_staged"), false);
  const json::object other = asked({"--dataset", (folder / "other").string()});
  EXPECT_EQ(get_int(other, "dataset_files"), 1);
  EXPECT_EQ(get_int(other, "cache_room_bytes"), 0);
  EXPECT_EQ(get_bool(other, "is_staged"), false);
}

TEST_F(BenchReport, WithoutADatasetTheOneOfTheRunStays) {
  const json::object same = asked({"--epochs", "90"});
  EXPECT_EQ(get_string(same, "dataset"), "imagenet");
  EXPECT_EQ(get_int(same, "dataset_files"), 20'000);
  EXPECT_EQ(get_bool(same, "is_staged"), true);
  EXPECT_EQ(get_int(same, "epochs"), 90);
}

}  // namespace
}  // namespace spark::cli
