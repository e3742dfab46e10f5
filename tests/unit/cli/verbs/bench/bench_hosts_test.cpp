#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class BenchWith : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("spark-ssh-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "runs");
    path_ = std::getenv("PATH");
    ::setenv("PATH", (folder.string() + ":" + path_).c_str(), 1);
    ::unsetenv("SLURM_JOB_ID");
    answer.run_id = "20261120T162126Z-1f3a";
    answer.host.name = "spark1";
    answer.scenarios = {{"shards", "sequential read", "1 MiB, QD 8 x 4", false, false, bench::Cache::Direct}};
    answer.paths.resize(1);
    answer.paths[0].name = "nfs";
    answer.cells = {bench::valid_cell("nfs", "shards", 1, 1'000'000'000, 1000, {})};
    bench::Record other = answer;
    other.host.name = "spark2";
    other.cells[0].bytes *= 3;
    std::ofstream(folder / "record") << json::serialize(bench::to_json(other));
    program.context.bench = [this](const auto& wanted, const auto&, const auto&) -> Result<bench::Record> {
      options = wanted;
      if (!wanted.next_cell(1)) answer.interrupted = true;
      std::filesystem::create_directories(folder / "runs" / answer.run_id);
      return answer;
    };
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder);
  }
  // A script that replaces ssh, first in PATH. Its last argument, the command, is kept.
  void ssh_does(const std::string& script) const {
    std::ofstream(folder / "ssh") << "#!/bin/sh\nfor word; do :; done; echo \"$word\" >"
                                  << (folder / "line").string() << "\n"
                                  << script << "\n";
    std::filesystem::permissions(folder / "ssh", std::filesystem::perms::owner_all);
  }
  std::string runs() const { return (folder / "runs").string(); }

  Program program;
  bench::BenchOptions options;
  bench::Record answer;
  std::filesystem::path folder;

 private:
  std::string path_;
};

TEST_F(BenchWith, AnotherHostMeasuresTheSamePlanAndTheReportCoversBoth) {
  ssh_does(
      "for cell in 0 1; do echo ready $cell; read word; done; printf 'record '; cat $(dirname $0)/record; "
      "echo");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "spark2", "--seed", "9", "--runs", runs()}), 0)
      << program.errors();
  EXPECT_EQ(options.max_rounds, options.rounds) << "all end with the same cell";
  const std::string line = read_file(folder / "line").value();
  for (const char* words : {"spark-stage bench in-step --quiet nfs=/mnt/b --scenario shards", "--rounds 5",
                            "--seed 9", "--size 4294967296"}) {
    EXPECT_NE(line.find(words), std::string::npos) << line;
  }
  EXPECT_NE(line.find("--part 1 --parts 2"), std::string::npos) << line;
  EXPECT_EQ(options.part.number, 0u);
  EXPECT_EQ(options.part.hosts, 2u);
  EXPECT_EQ(line.find("--scenario demand"), std::string::npos);
  EXPECT_NE(program.output().find("spark1, spark2"), std::string::npos) << program.output();
  EXPECT_NE(program.output().find("1.00 GB/s"), std::string::npos) << "the mean of 0.5 and 1.5";
}

TEST_F(BenchWith, HostsInStepMeasureAtOnceAlsoIfTheirClocksDiffer) {
  answer.paths[0].storage.kind = bench::PathKind::Nas;
  bench::Record other = answer;
  other.host.name = "spark2";
  other.started += std::chrono::minutes(3);
  std::ofstream(folder / "record") << json::serialize(bench::to_json(other));
  ssh_does(
      "for cell in 0 1; do echo ready $cell; read word; done; printf 'record '; cat $(dirname $0)/record; "
      "echo");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "spark2", "--runs", runs()}), 0)
      << program.errors();
  EXPECT_NE(program.output().find("100 %"), std::string::npos) << program.output();
  EXPECT_EQ(program.output().find("at once for"), std::string::npos) << program.output();
}

TEST_F(BenchWith, TheRecordOfThisHostAloneIsNotKeptAsAWholeRun) {
  ssh_does("for cell in 0 1; do echo ready $cell; read word; done; echo 'no space' >&2; exit 1");
  EXPECT_NE(program.run({"bench", "nfs=/mnt/b", "--with", "spark2", "--runs", runs()}), 0);
  const auto kept = bench::load_record(runs(), "last");
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_TRUE(kept->interrupted);
  ASSERT_EQ(kept->warnings.size(), 1u);
  EXPECT_NE(kept->warnings[0].find("spark2"), std::string::npos) << kept->warnings[0];
}

TEST_F(BenchWith, ARelativePathIsTheSameFolderOnTheOtherHost) {
  ssh_does("exit 1");
  program.run({"bench", "nfs=b/c", "--with", "spark2", "--runs", runs()});
  const std::string line = read_file(folder / "line").value();
  EXPECT_NE(line.find("nfs=" + (std::filesystem::current_path() / "b/c").string()), std::string::npos)
      << line;
}

TEST_F(BenchWith, ADatasetBehindALinkHasTheLinksNameOnTheOtherHost) {
  ssh_does("exit 1");
  std::ofstream(folder / "file") << "data";
  const std::string link = "link-" + std::to_string(::getpid());
  std::filesystem::create_directory_symlink(folder, link);
  program.run({"bench", "nfs=/mnt/b", "--with", "spark2", "--dataset", "./" + link, "--runs", runs()});
  const std::string there = (std::filesystem::current_path() / link).string();
  std::filesystem::remove(link);
  const std::string line = read_file(folder / "line").value();
  EXPECT_NE(line.find("--dataset " + there), std::string::npos) << line;
}

TEST_F(BenchWith, HostsThatCallThemselvesTheSameEachKeepTheirRecord) {
  bench::Record other = answer;
  other.cells[0].bytes *= 3;
  std::ofstream(folder / "record") << json::serialize(bench::to_json(other));
  ssh_does(
      "for cell in 0 1; do echo ready $cell; read word; done; printf 'record '; cat $(dirname $0)/record; "
      "echo");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "10.0.0.2", "--runs", runs()}), 0)
      << program.errors();
  EXPECT_NE(program.output().find("spark1, 10.0.0.2"), std::string::npos) << program.output();
  EXPECT_NE(program.output().find("warning: 10.0.0.2 calls itself spark1"), std::string::npos);
  for (const char* name : {"host-spark1.json", "host-10.0.0.2.json"})
    EXPECT_TRUE(std::filesystem::exists(folder / "runs" / answer.run_id / name)) << name;
}

TEST_F(BenchWith, TheOtherHostStartsAtItsPartOfTheFiles) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "go\ngo\n", 6), 6);
  const int before = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  EXPECT_EQ(program.run({"bench", "in-step", "nfs=/mnt/b", "--part", "2", "--parts", "3", "--quiet"}), 0)
      << program.errors();
  ::dup2(before, STDIN_FILENO);
  for (const int end : {before, ends[0], ends[1]}) ::close(end);
  EXPECT_EQ(options.part.number, 2u);
  EXPECT_EQ(options.part.hosts, 3u);
}

TEST_F(BenchWith, AHostThatCannotBeReachedEndsTheRunAndIsNamed) {
  ssh_does("echo 'no route' >&2; exit 255");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "spark2"}), 4);
  EXPECT_NE(program.errors().find("ssh does not reach spark2: no route"), std::string::npos)
      << program.errors();
}

TEST_F(BenchWith, ThisHostOrOneTwiceIsRefused) {
  ssh_does("exit 1");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "localhost"}), 2);
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--with", "b", "--with", "b"}), 2);
}

}  // namespace
}  // namespace spark::cli
