#include <gtest/gtest.h>

#include <fstream>

#include "bench/report/report.hpp"
#include "bench/report/run_folder.hpp"
#include "tests/unit/bench/sample_record.hpp"
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
    answer->run_id = "20261120T162126Z-1f3a";
    answer->scenarios = {
        {"shards", "sequential read", "1 MiB, QD 8 x 4", false, false, bench::Cache::Direct}};
    answer->paths.resize(1);
    answer->paths[0].name = "nfs";
    answer->cells.resize(1);
    answer->cells[0] = bench::valid_cell("nfs", "shards", 1, 1'000'000'000, 1000, {});
    file = std::filesystem::temp_directory_path() / ("spark-bench-" + std::to_string(::getpid()) + ".json");
  }
  void TearDown() override {
    std::filesystem::remove(file);
    std::filesystem::remove_all(runs());
  }
  std::string runs() const { return file.string() + ".runs"; }

  // Stores the answer in the runs folder.
  void keep() {
    const auto folder = bench::RunFolder::make(runs(), answer->run_id);
    ASSERT_TRUE(folder) << folder.error().message();
    ASSERT_TRUE(folder->write(*answer));
  }

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

TEST_F(Bench, ARepeatableOptionTakesOneWordAndNotThePaths) {
  EXPECT_EQ(program.run({"bench", "--scenario", "latency", "nfs=/mnt/b", "--scenario", "shards", "local=/c"}),
            0)
      << program.errors();
  ASSERT_EQ(options.paths.size(), 2U);
  EXPECT_EQ(options.paths[0].name, "nfs");
  EXPECT_EQ(options.scenarios, (std::vector<std::string>{"latency", "shards"}));
}

TEST_F(Bench, PrintsALineForEachStepAndAtIntervals) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b"}), 0);
  const std::string errors = program.errors();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 5) << errors;  // estimate, step, 15 s, step, kept
}

TEST_F(Bench, QuietPrintsOnlyTheResult) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "-q"}), 0);
  EXPECT_EQ(program.errors(), "");
  EXPECT_FALSE(program.output().empty());
}

TEST_F(Bench, MayBeCalledRun) {
  EXPECT_EQ(program.run({"bench", "run", "nfs=/mnt/b", "--rounds", "7"}), 0) << program.errors();
  ASSERT_EQ(options.paths.size(), 1U);
  EXPECT_EQ(options.rounds, 7U);
}

TEST_F(Bench, KnowsHowManyHostsOfAFleetStageTogether) {
  std::ofstream(file) << "version: 1\nfleet:\n  listen: 10.0.0.1:7789\n  key_file: /etc/key\n"
                         "  peers: {a: [10.0.0.1], b: [10.0.0.2], c: [10.0.0.3]}\n";
  EXPECT_EQ(program.run({"--config", file.string(), "bench", "nfs=/mnt/b"}), 0) << program.errors();
  EXPECT_EQ(options.asked.fleet_hosts, 3U) << "the list names this host too";
  EXPECT_EQ(program.run({"--config", "/nowhere", "bench", "nfs=/mnt/b"}), 0);
  EXPECT_EQ(options.asked.fleet_hosts, 0U);
}

TEST_F(Bench, PassesTheJobsDemandEpochsAndDatasetOn) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "8xresnet50", "--epochs", "90", "--dataset",
                         "1.2TB", "--rate-limit", "500MB/s", "--nodes", "4", "--target-memory", "32GB"}),
            0)
      << program.errors();
  EXPECT_DOUBLE_EQ(options.asked.demand.bytes_per_second, 1.64e9);
  EXPECT_EQ(options.asked.epochs, 90u);
  EXPECT_EQ(options.asked.nodes, 4u);
  EXPECT_EQ(options.asked.target_memory, 32'000'000'000u);
  EXPECT_EQ(options.asked.dataset_bytes, 1'200'000'000'000u);
  EXPECT_EQ(options.rate_limit, 500'000'000u);
  EXPECT_EQ(options.rounds, 5u);
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "unet3d", "--demand", "1GB/s"}), 2);
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "unet4d"}), 2);
}

TEST_F(Bench, AsksHowLongAModelTakesToBeLoaded) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "model-load", "--quick", "--dataset", "16GB"}), 0)
      << program.errors();
  EXPECT_TRUE(options.asked.loads_model);
  EXPECT_EQ(options.asked.dataset_bytes, 16'000'000'000u);
  EXPECT_EQ(options.asked.demand.bytes_per_second, 0);
  EXPECT_EQ(program.errors().find("read rate is not known"), std::string::npos) << "it is not asked for";
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "modelload"}), 2);
  EXPECT_NE(program.errors().find("did you mean 'model-load'?"), std::string::npos) << program.errors();
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--like", "unet3d"}), 0);
  EXPECT_FALSE(options.asked.loads_model);
}

TEST_F(Bench, AModelIsAsLargeAsItsStagedCopyWhateverElseItsFolderHolds) {
  std::filesystem::create_directories(runs() + "/hub");
  std::ofstream(runs() + "/hub/other") << std::string(700, 'x');
  std::ofstream(file) << "version: 1\ndatasets:\n  llama: {path: " << runs() << "/hub, model: a/b}\n";
  program.client.answer("GET /v1/status", 200, R"({"cache": {"path": "/c", "capacity_bytes": 1000}})");
  program.client.answer("GET /v1/datasets", 200,
                        R"({"datasets": [{"name": "llama", "state": "ready", "bytes": 400, "leases": []}]})");
  EXPECT_EQ(program.run({"--config", file.string(), "bench", "nfs=/mnt/b", "--like", "model-load",
                         "--dataset", "llama"}),
            0)
      << program.errors();
  EXPECT_EQ(options.asked.dataset_bytes, 400u);
}

TEST_F(Bench, AKeptRunIsAskedAboutLoading) {
  keep();
  EXPECT_EQ(program.run({"bench", "report", "last", "--runs", runs(), "--like", "model-load"}), 0)
      << program.errors();
  EXPECT_NE(program.output().find("measure with --like model-load"), std::string::npos);
}

TEST_F(Bench, CountsTheFilesOfADatasetThatIsAFolder) {
  std::filesystem::create_directories(runs() + "/set/sub");
  std::ofstream(runs() + "/set/one") << std::string(700, 'x');
  std::ofstream(runs() + "/set/sub/two") << std::string(300, 'x');
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--dataset", runs() + "/set"}), 0) << program.errors();
  EXPECT_EQ(options.asked.dataset_bytes, 1000u);
  EXPECT_EQ(options.asked.dataset_files, 2u);
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--dataset", runs() + "/none"}), 3);
  std::filesystem::create_directory_symlink("set", runs() + "/link");
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--dataset", runs() + "/link"}), 0) << program.errors();
  EXPECT_EQ(options.asked.folder, std::filesystem::canonical(runs() + "/set").string()) << "as paths are";
}

TEST_F(Bench, AsksWhetherADatasetIsStagedAndHowMuchSpaceTheCacheCouldFree) {
  const std::string set = runs() + "/set";
  std::filesystem::create_directories(set);
  std::ofstream(set + "/one") << std::string(700, 'x');
  std::ofstream(file) << "version: 1\ndatasets:\n  models: {path: " << set << "}\n";
  program.client.answer(
      "GET /v1/status", 200,
      R"({"cache": {"path": "/c", "capacity_bytes": 1000, "used_bytes": 700, "free_bytes": 400}})");
  program.client.answer("GET /v1/datasets", 200, R"({"datasets": [
      {"name": "held", "state": "ready", "bytes": 300, "leases": [{"id": "1"}]},
      {"name": "models", "state": "ready", "bytes": 400, "leases": []}]})");
  EXPECT_EQ(program.run({"--config", file.string(), "bench", "nfs=/mnt/b", "--dataset", "models"}), 0)
      << program.errors();
  EXPECT_TRUE(options.asked.is_staged);
  EXPECT_EQ(options.asked.cache_room, 700u) << "all but what is leased";
}

TEST_F(Bench, WithoutPathsMeasuresEveryReadyVolumeAndTheCache) {
  program.client.answer("GET /v1/status", 200, R"({"volumes": [
      {"name": "datasets", "state": "ready", "mount": "/mnt/rosa"},
      {"name": "nas", "state": "stalled", "mount": "/mnt/nas"}],
      "cache": {"path": "/var/lib/spark-stage/cache"}})");
  EXPECT_EQ(program.run({"bench"}), 0) << program.errors();
  ASSERT_EQ(options.paths.size(), 2u);
  EXPECT_EQ(options.paths[0].path, "/mnt/rosa");
  EXPECT_EQ(options.paths[1].name, "local");
  EXPECT_NE(program.errors().find("nas is left out: it is stalled"), std::string::npos);
}

TEST_F(Bench, WithoutPathsAndDaemonAsksForPaths) {
  program.client.fail_once("GET /v1/status", {Errc::Unavailable, "no daemon", ""});
  EXPECT_EQ(program.run({"bench"}), 4);
  EXPECT_NE(program.errors().find("give paths: spark-stage bench"), std::string::npos);
}

TEST_F(Bench, ReportsMistakesBeforeTheAnnouncement) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--scenario", "nonsense"}), 2);
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--scenario", "demand"}), 2);
  EXPECT_EQ(program.errors().find("Measuring"), std::string::npos) << program.errors();
}

TEST_F(Bench, ADryRunMeasuresNothing) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--dry-run"}), 0);
  EXPECT_TRUE(options.paths.empty());
  EXPECT_NE(program.output().find("[stream0]"), std::string::npos);
}

TEST_F(Bench, WritesThePage) {
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b", "--html", file.string()}), 0) << program.errors();
  EXPECT_TRUE(read_file(file)->starts_with("<!DOCTYPE html>"));
}

TEST_F(Bench, ARunWithoutAnyResultHasFailed) {
  answer->cells[0].status = bench::CellStatus::Invalid;
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b"}), 1);
}

TEST_F(Bench, ReportsASavedRunInEveryFormat) {
  keep();
  EXPECT_EQ(program.run({"bench", "report", "last", "--runs", runs()}), 0) << program.errors();
  EXPECT_EQ(program.output(), bench::text_table(*answer));
  for (const auto& [form, words] :
       {std::pair{"markdown", "# spark-stage bench"}, std::pair{"json", "spark-stage-bench/2"}}) {
    EXPECT_EQ(program.run({"bench", "report", "1f3a", "--runs", runs(), "--format", form}), 0)
        << program.errors();
    EXPECT_NE(program.output().find(words), std::string::npos);
  }
  EXPECT_EQ(program.run({"bench", "report", "last", "--runs", runs(), "--html", "-"}), 0);
  EXPECT_EQ(program.run({"bench", "report", "nosuch", "--runs", runs()}), 3);
}

TEST_F(Bench, ListsComparesAndMerges) {
  keep();
  EXPECT_EQ(program.run({"bench", "list", "--runs", runs()}), 0) << program.errors();
  EXPECT_NE(program.output().find("20261120T162126Z-1f3a"), std::string::npos);
  EXPECT_EQ(program.run({"bench", "compare", "last", "last", "--runs", runs()}), 0) << program.errors();
  EXPECT_EQ(program.run({"bench", "merge", "last", "last", "--runs", runs()}), 2);
  EXPECT_EQ(program.run({"bench", "merge"}), 2);
}

TEST_F(Bench, GivesListComparisonAndMergedRecordAsJson) {
  keep();
  const auto json_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--runs", runs(), "--json"});
    Program other;
    EXPECT_EQ(other.run(arguments), 0) << other.errors();
    return parse_json_object(other.output());
  };
  const auto list = json_of({"bench", "list"});
  ASSERT_TRUE(list);
  EXPECT_EQ(get_string(get_array(*list, "runs")->front().as_object(), "run_id"), answer->run_id);
  const auto comparison = json_of({"bench", "compare", "last", "last"});
  ASSERT_TRUE(comparison);
  EXPECT_EQ(get_string(get_array(*comparison, "results")->front().as_object(), "scenario"), "shards");
  answer->host.name = "spark2";
  std::ofstream(file) << bench::json_text(*answer);
  const auto merged = json_of({"bench", "merge", "last", file.string()});
  ASSERT_TRUE(merged);
  EXPECT_EQ(get_array(*merged, "hosts")->size(), 2U);
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

TEST_F(Bench, AnInterruptedRunExitsWith130AfterItsTable) {
  answer->interrupted = true;
  EXPECT_EQ(program.run({"bench", "nfs=/mnt/b"}), 130);
  EXPECT_FALSE(program.output().empty());
}

TEST_F(Bench, RefusesPathsThatItCannotMeasure) {
  answer = fail(Errc::Refused, "/dev/nvme0n1 is a raw device", "name a folder");
  EXPECT_EQ(program.run({"bench", "a=/dev/nvme0n1"}), 7);
  EXPECT_EQ(program.run({"bench", "=/mnt"}), 2);
}

}  // namespace
}  // namespace spark::cli
