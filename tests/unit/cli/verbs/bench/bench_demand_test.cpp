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
    return program.run({"bench", "demand", "--dataset", (folder / "set").string(), "--runs",
                        (folder / "runs").string(), "--for", limit, "--json", (folder / "measured").string(),
                        "--", "sh", "-c", script});
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
