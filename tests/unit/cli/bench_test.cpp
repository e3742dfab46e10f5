#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Bench : public ::testing::Test {
 protected:
  void SetUp() override {
    program.context.bench = [this](const auto& wanted, const auto& progress,
                                   const auto&) -> Result<bench::Record> {
      options = wanted;
      for (unsigned second = 0; second < 20; ++second) {
        progress({"random read", "nfs", 1 + second / 18, 2, 1, 3, 1e9, Duration(20'000 - second * 1000)});
        program.timer.sleep(Duration(1000));
      }
      return answer;
    };
    file = std::filesystem::temp_directory_path() / ("spark-bench-" + std::to_string(::getpid()) + ".json");
  }
  void TearDown() override { std::filesystem::remove(file); }

  Program program;
  bench::BenchOptions options;
  Result<bench::Record> answer = bench::Record{};
  std::filesystem::path file;
};

TEST_F(Bench, PassesItsOptionsOn) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "local=/var/c", "--size", "16GiB", "--runtime", "30s",
                         "--rounds", "5", "--seed", "9"}),
            0)
      << program.errors();
  ASSERT_EQ(options.paths.size(), 2u);
  EXPECT_EQ(options.paths[1].name, "local");
  EXPECT_EQ(options.size, 16 * kGiB);
  EXPECT_EQ(options.runtime, std::chrono::seconds(30));
  EXPECT_EQ(options.rounds, 5u);
  EXPECT_EQ(options.seed, 9u);
}

TEST_F(Bench, PrintsALineForEachStepAndNowAndThen) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b"}), 0);
  const std::string errors = program.errors();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 4) << errors;  // estimate, step, 15 s, step
}

TEST_F(Bench, WritesTheRecord) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--json", file.string()}), 0) << program.errors();
  EXPECT_TRUE(parse_json(read_file(file).value()));
  EXPECT_FALSE(program.output().empty());
}

TEST_F(Bench, PrintsTheRecordAlone) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--json", "-"}), 0);
  EXPECT_TRUE(parse_json(program.output()));
}

TEST_F(Bench, ThatIsInterruptedExitsWith130AfterItsTable) {
  answer->interrupted = true;
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b"}), 130);
  EXPECT_FALSE(program.output().empty());
}

TEST_F(Bench, RefusesWhatItCannotMeasure) {
  answer = fail(Errc::Refused, "/dev/nvme0n1 is a raw device", "name a folder");
  EXPECT_EQ(program.run({"bench", "a=/dev/nvme0n1"}), 7);
  EXPECT_EQ(program.run({"bench", "=/mnt"}), 2);
}

}  // namespace
}  // namespace spark::cli
