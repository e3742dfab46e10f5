#include "bench/measure/plan.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spark::bench {
namespace {

BenchOptions three_paths() {
  BenchOptions options;
  options.paths = {{"a", "/a"}, {"b", "/b"}, {"c", "/c"}};
  return options;
}

TEST(PathArgument, NameAndPathAreSeparated) {
  const auto named = parse_path_argument("nvme-tcp=/mnt/a=b");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->name, "nvme-tcp");
  EXPECT_EQ(named->path, "/mnt/a=b");
  EXPECT_EQ(parse_path_argument("/mnt/nfs/")->name, "nfs");
  EXPECT_EQ(parse_path_argument("/mnt/a=b/c")->path, "/mnt/a=b/c");
  EXPECT_EQ(parse_path_argument("/")->name, "root");
  EXPECT_EQ(parse_path_argument("relative/folder")->path, "relative/folder");
}

TEST(PathArgument, AnInvalidArgumentIsRefusedWithAHint) {
  for (const char* text : {"", "a=", "=/mnt", "two words=/mnt", "/mnt/two words"}) {
    const auto path = parse_path_argument(text);
    ASSERT_FALSE(path) << text;
    EXPECT_EQ(path.error().kind, Errc::Invalid);
    EXPECT_FALSE(path.error().hint.empty());
  }
}

std::vector<std::string> ids_of(const BenchOptions& options) {
  std::vector<std::string> ids;
  const auto scenarios = check_options(options).value();
  for (const Scenario* scenario : scenarios) ids.emplace_back(scenario->id);
  return ids;
}

TEST(Options, TheDefaultOmitsTheDemandScenarioAndBadOptionsAreRefused) {
  EXPECT_EQ(ids_of(three_paths()), (std::vector<std::string>{"shards", "stream", "samples", "smallfiles",
                                                             "latency", "checkpoint", "stagecopy"}));
  EXPECT_FALSE(check_options({}));
  const auto refused = [](auto change) {
    BenchOptions options = three_paths();
    change(options);
    const auto checked = check_options(options);
    return !checked && checked.error().kind == Errc::Invalid;
  };
  EXPECT_TRUE(refused([](BenchOptions& o) { o.paths[1].name = "a"; }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.paths[1].name = "a\n"; }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.size = 15 * kMiB; }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.rate_limit = 1000; }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.scenarios = {"demand"}; }))
      << "without saying how much that is";
  EXPECT_TRUE(refused([](BenchOptions& o) { o.runtime = std::chrono::seconds(0); }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.rounds = 0; }));
  EXPECT_TRUE(refused([](BenchOptions& o) { o.scenarios = {"nosuch"}; }));
}

TEST(Options, ScenariosRunOnceInAFixedOrder) {
  BenchOptions options = three_paths();
  options.scenarios = {"latency", "shards", "latency"};
  const auto chosen = check_options(options);
  ASSERT_TRUE(chosen);
  ASSERT_EQ(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0]->id, "shards");
}

TEST(Scenarios, AMisspeltNameSuggestsTheNearest) {
  EXPECT_NE(find_scenario("shard").error().hint.find("'shards'"), std::string::npos);
  EXPECT_NE(find_scenario("zzzzzzzz").error().hint.find("latency"), std::string::npos);
}

TEST(Options, AKnownDemandAddsTheDemandScenario) {
  BenchOptions options = three_paths();
  options.asked.demand.bytes_per_second = 1e9;
  EXPECT_EQ(ids_of(options).size(), 8u);
}

TEST(Options, ModelsAreLoadedOnlyWhenAskedFor) {
  const std::vector<std::string> all = {"load-mmap", "load-buffered", "load-direct"};
  BenchOptions options = three_paths();
  options.asked.loads_model = true;
  EXPECT_EQ(ids_of(options), all);
  EXPECT_EQ(ids_of(quick(options)), all);
  EXPECT_FALSE(quick(options).must_decide) << "no copies are made";
  options.scenarios = {"shards"};
  EXPECT_EQ(ids_of(options), std::vector<std::string>{"shards"});
  options = three_paths();
  options.scenarios = {"load-direct"};
  EXPECT_EQ(ids_of(options), std::vector<std::string>{"load-direct"});
}

TEST(Plan, LoadingTakesAsLongAsItsBytesNeed) {
  BenchOptions options = three_paths();
  options.size = 1'000'000'000;
  options.scenarios = {"load-mmap"};
  // 3 paths x (5 rounds and the warm-up) x (2 s and 0.7 s), 3 x (1 s + 2 s) to prepare, and the idle host.
  EXPECT_NEAR(static_cast<double>(estimate(options).count()), 18 * 2700 + 9000 + 2000, 500);
  options.rate_limit = 2'000'000;
  EXPECT_GT(cell_deadline(options), std::chrono::seconds(500)) << "the limit alone takes so long";
}

TEST(Plan, ACopyUnderARateLimitHasTheTimeThatItNeeds) {
  BenchOptions options = three_paths();
  options.size = 4ULL << 30;
  options.rate_limit = 1 << 20;
  options.scenarios = {"stagecopy"};
  const auto scenarios = check_options(options);
  ASSERT_TRUE(scenarios);
  EXPECT_GT(cell_time(options, *scenarios->front()), std::chrono::seconds(1024));
  EXPECT_GT(cell_deadline(options), std::chrono::seconds(1024));
}

TEST(Plan, TheEstimateCountsSmallFilesAndTheRoundsThatDifferingResultsMayAdd) {
  BenchOptions options = three_paths();
  options.scenarios = {"shards"};
  const Duration without = estimate(options);
  EXPECT_EQ(estimate_at_most(options) - without, Duration(4 * 3 * 2700));
  options.scenarios = {"smallfiles"};
  // 2048 files of 128 KiB in each path, with a millisecond for each.
  EXPECT_NEAR(static_cast<double>((estimate(options) - without).count()), 3 * (2048 + 537), 5);
  options.runtime = std::chrono::seconds(60);
  EXPECT_EQ(estimate_at_most(options), estimate(options)) << "there is no time for more rounds";
  options.max_rounds = options.rounds;
  EXPECT_EQ(estimate_at_most(options), estimate(options));
}

TEST(Plan, EachRoundVisitsEveryPathOncePerScenarioAndTheWarmUpIsRoundZero) {
  BenchOptions options = three_paths();
  options.scenarios = {"shards", "latency", "samples"};
  const auto scenarios = check_options(options).value();
  const auto cells = plan_cells(3, scenarios, 4, 7);
  ASSERT_EQ(cells.size(), 3 * 3 * 5);
  EXPECT_EQ(cells.front().round, 0u);
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t i = 0; i < cells.size(); i += 3) {
    std::vector<std::size_t> order;
    for (std::size_t j = i; j < i + 3; ++j) {
      EXPECT_EQ(cells[j].scenario, cells[i].scenario);
      EXPECT_EQ(cells[j].round, i / 9);
      order.push_back(cells[j].path);
    }
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 3u);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u) << "the order is drawn anew each time";
}

TEST(Plan, TheSameSeedGivesTheSameOrder) {
  const auto scenarios = check_options(three_paths()).value();
  const auto order = [&](std::uint64_t seed) {
    std::vector<std::size_t> paths;
    for (const PlannedCell& cell : plan_cells(3, scenarios, 3, seed)) paths.push_back(cell.path);
    return paths;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(Plan, TheEstimateCountsCellsTheWarmUpAndTheLayout) {
  BenchOptions options = three_paths();
  options.size = 1'000'000'000;
  options.scenarios = {"shards", "latency"};
  // 3 paths x 2 scenarios x (5 rounds and the warm-up) x 2.7 s, 3 x (1 s + 2 s) to prepare, and 2 s for the
  // idle host.
  EXPECT_NEAR(static_cast<double>(estimate(options).count()), 36 * 2700 + 9000 + 2000, 500);
  EXPECT_GT(longest_run(options, 36), estimate(options));
}

TEST(Plan, ARunOfThreePathsTakesLessThanTenMinutesAndAQuickOneLessThanTwo) {
  EXPECT_LT(estimate(three_paths()), std::chrono::minutes(10));
  EXPECT_LT(estimate(quick(three_paths())), std::chrono::minutes(2));
}

TEST(Plan, TheBytesToWriteAreLimited) {
  const auto scenarios = check_options(three_paths()).value();
  EXPECT_EQ(layout_size(three_paths()), 4 * kGiB);
  EXPECT_EQ(small_file_count(three_paths(), scenarios), 2048u);
  EXPECT_EQ(room_of(three_paths(), scenarios), 4 * kGiB + 512 * kMiB + kMiB + kGiB);
}

TEST(DryRun, ShowsTheJobsAndTouchesNothing) {
  BenchOptions options = three_paths();
  options.paths[0].path = "/nowhere/at/all";
  const auto text = dry_run(options);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("filename=/nowhere/at/all/.spark-stage-bench-NEW/data"), std::string::npos);
  EXPECT_NE(text->find("# stagecopy"), std::string::npos);
  options.asked.loads_model = true;
  EXPECT_NE(dry_run(options)->find("# loads 4.29 GB from each path, once in each round, by 8 threads"),
            std::string::npos);
  options.rounds = 0;
  EXPECT_FALSE(dry_run(options));
}

TEST(DryRun, HasTheLowerOfTheJobsRateAndTheLimit) {
  BenchOptions options = three_paths();
  options.scenarios = {"demand"};
  options.asked.demand.bytes_per_second = 4e9;
  options.rate_limit = 400'000'000;
  EXPECT_NE(dry_run(options)->find("rate=100000000\n"), std::string::npos) << "of each of four streams";
}

TEST(Plan, QuickNeverMakesARunLonger) {
  BenchOptions options = three_paths();
  options.size = 8 * kMiB;
  options.runtime = std::chrono::seconds(1);
  EXPECT_EQ(quick(options).size, 8 * kMiB);
  EXPECT_EQ(quick(options).runtime, std::chrono::seconds(1));
}

}  // namespace
}  // namespace spark::bench
