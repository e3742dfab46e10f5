#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "bench/demand/stored_demand.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class BenchDemand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("spark-demand-" + std::to_string(::getpid()));
    fs::create_directories(folder / "set");
    std::ofstream(folder / "set/file") << std::string(400'000, 'x');
  }
  void TearDown() override { fs::remove_all(folder); }

  // Reads the file for this many seconds, at most a hundred times per second.
  std::string reader(int seconds) const {
    return "end=$(($(date +%s) + " + std::to_string(seconds) + ")); exec 3<" +
           (folder / "set/file").string() +
           "; while [ $(date +%s) -lt $end ]; do head -c 1000 <&3 >/dev/null; sleep 0.01; done; sleep 30";
  }
  int measure(const std::string& limit, const std::string& script) {
    return measure_with({"--dataset", (folder / "set").string()}, limit, script);
  }
  int measure_with(const std::vector<std::string>& options, const std::string& limit,
                   const std::string& script) {
    std::vector<std::string> words = {"bench", "demand"};
    words.insert(words.end(), options.begin(), options.end());
    const std::vector<std::string> more = {"--runs", (folder / "runs").string(),
                                           "--for",  limit,
                                           "--json", (folder / "measured").string(),
                                           "--",     "sh",
                                           "-c",     script};
    words.insert(words.end(), more.begin(), more.end());
    return program.run(words);
  }

  Program program;
  fs::path folder;
};

TEST_F(BenchDemand, MeasuresACommandEndsItAndSavesTheRateForTheNextRun) {
  EXPECT_EQ(measure("9s", reader(7)), 0) << program.errors();
  EXPECT_THAT(program.output(), HasSubstr("The job consumes "));
  EXPECT_THAT(program.output(), HasSubstr("1 file of 400 kB on average"));
  const auto stored = bench::load_demand(folder / "runs");
  ASSERT_TRUE(stored) << stored.error().message();
  ASSERT_TRUE(*stored);
  EXPECT_GT((*stored)->reads.rate.value, 0);
  const auto object = parse_json_object(read_file(folder / "measured").value());
  ASSERT_TRUE(object);
  EXPECT_DOUBLE_EQ(get_double(*object, "bytes_per_second").value_or(0), (*stored)->reads.rate.value);
  EXPECT_EQ(get_string(*object, "dataset"), (folder / "set").string());

  bench::BenchOptions options;
  program.context.bench = [&](const auto& wanted, const auto&, const auto&) -> Result<bench::Record> {
    options = wanted;
    return bench::Record{};
  };
  const std::string runs = (folder / "runs").string();
  program.run({"bench", "nfs=/mnt/b", "--runs", runs});
  EXPECT_EQ(options.asked.demand.bytes_per_second, (*stored)->reads.rate.value);
  program.run({"bench", "nfs=/mnt/b", "--runs", runs, "--demand", "3GB/s"});
  EXPECT_EQ(options.asked.demand.bytes_per_second, 3e9);
  fs::create_directory(folder / "other");
  std::ofstream(folder / "other/file") << "x";
  program.run({"bench", "nfs=/mnt/b", "--runs", runs, "--dataset", (folder / "other").string()});
  EXPECT_EQ(options.asked.demand.bytes_per_second, 0) << "another dataset is another job";
  EXPECT_THAT(program.errors(), HasSubstr("not used for"));
}

TEST_F(BenchDemand, AJobOnAStagedCopyGivesTheDemandOfThatDatasetOnly) {
  fs::create_directory(folder / "unused");
  ::setenv("SPARK_STAGE_IMAGE_NET", (folder / "set").c_str(), 1);
  ::setenv("SPARK_STAGE_UNUSED", (folder / "unused").c_str(), 1);
  EXPECT_EQ(measure_with({}, "9s", reader(7)), 0) << program.errors();
  ::unsetenv("SPARK_STAGE_IMAGE_NET");
  ::unsetenv("SPARK_STAGE_UNUSED");
  std::ofstream(folder / "config") << "version: 1\ndatasets:\n  image-net: {path: "
                                   << (folder / "set").string()
                                   << "}\n  unused: {path: " << (folder / "set").string() << "}\n";
  bench::BenchOptions options;
  program.context.bench = [&](const auto& wanted, const auto&, const auto&) -> Result<bench::Record> {
    options = wanted;
    return bench::Record{};
  };
  const auto demand_for = [&](const std::vector<std::string>& dataset) {
    std::vector<std::string> words = {"--config", (folder / "config").string(), "bench", "nfs=/mnt/b",
                                      "--runs",   (folder / "runs").string()};
    words.insert(words.end(), dataset.begin(), dataset.end());
    program.run(words);
    return options.asked.demand.bytes_per_second;
  };
  EXPECT_GT(demand_for({"--dataset", "image-net"}), 0) << program.errors();
  EXPECT_GT(demand_for({}), 0);
  EXPECT_EQ(demand_for({"--dataset", "unused"}), 0);
  EXPECT_THAT(program.errors(), HasSubstr("of a job on SPARK_STAGE_IMAGE_NET, not used for unused"));
}

TEST_F(BenchDemand, ACommandThatFailsIsNotMeasured) {
  EXPECT_EQ(measure("9s", "exit 3"), 1);
  EXPECT_THAT(program.errors(), HasSubstr("ended with status 3"));
  EXPECT_FALSE(fs::exists(folder / "runs/demand.json"));
}

TEST_F(BenchDemand, ACommandThatReadsNoDataGivesNoMeasurement) {
  EXPECT_EQ(program.run({"bench", "demand"}), 2);
  EXPECT_THAT(program.errors(), HasSubstr("needs a command behind --"));
  EXPECT_EQ(measure("9s", "true"), 2);
  EXPECT_THAT(program.errors(), HasSubstr("not seen to read a file of the dataset"));
}

}  // namespace
}  // namespace spark::cli
