#include "bench/demand/stored_demand.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

StoredDemand measured() {
  StoredDemand demand;
  demand.measured = WallTime(std::chrono::seconds(1'795'191'686));
  demand.command = "python train.py";
  demand.dataset = "imagenet";
  demand.staged = {"SPARK_STAGE_IMAGENET", "SPARK_STAGE_COCO"};
  demand.reads.rate = {2e8, {1.9e8, 2.1e8}};
  demand.reads.mean_file = 118'000;
  demand.reads.order = ReadOrder::Random;
  return demand;
}

TEST(StoredDemand, IsReadBackAsItWasMeasured) {
  const DiskFolder disk;
  ASSERT_TRUE(save_demand(disk / "runs", measured()));
  const auto loaded = load_demand(disk / "runs");
  ASSERT_TRUE(loaded) << loaded.error().message();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->dataset, "imagenet");
  EXPECT_EQ((*loaded)->staged, measured().staged);
  EXPECT_EQ((*loaded)->reads.mean_file, 118'000u);
  const Demand demand = (*loaded)->demand();
  EXPECT_EQ(demand.bytes_per_second, 2e8);
  EXPECT_EQ(demand.words, "python train.py, measured 2026-11-20");
  EXPECT_EQ(demand.order, ReadOrder::Random);
}

TEST(StoredDemand, ItsCautionsAreKeptForTheVerdict) {
  const DiskFolder disk;
  StoredDemand demand = measured();
  EXPECT_TRUE(demand.demand().cautions.empty());
  demand.reads.counted_at_storage = demand.reads.may_lack_reads = true;
  demand.waiting_share = 0.5;
  ASSERT_TRUE(save_demand(disk / "runs", demand));
  const auto loaded = load_demand(disk / "runs");
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->demand().cautions, demand.cautions());
  EXPECT_EQ(demand.cautions().size(), 2u);
}

TEST(StoredDemand, APageCacheThatCouldNotBeSeenIsACautionWhereItMatters) {
  const DiskFolder disk;
  StoredDemand demand = measured();
  demand.is_cache_known = false;
  EXPECT_TRUE(demand.cautions().empty()) << "its calls were counted";
  demand.reads.counted_at_storage = demand.reads.may_lack_reads = true;
  ASSERT_EQ(demand.cautions().size(), 2u);
  EXPECT_NE(demand.cautions().back().find("does not tell"), std::string::npos);
  ASSERT_TRUE(save_demand(disk / "runs", demand));
  EXPECT_EQ((*load_demand(disk / "runs"))->demand().cautions, demand.cautions());
}

TEST(StoredDemand, LoadingWithoutASavedDemandReturnsNone) {
  const DiskFolder disk;
  const auto loaded = load_demand(disk / "runs");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_FALSE(*loaded);
}

TEST(StoredDemand, AnInvalidFileIsRefused) {
  const DiskFolder disk;
  for (const char* text : {"", "{}", "[1]", R"({"schema": "spark-stage-demand/1"})",
                           R"({"schema": "spark-stage-demand/1", "bytes_per_second": -1})",
                           R"({"schema": "spark-stage-demand/2", "bytes_per_second": 1})"}) {
    write_text(disk / "demand.json", text);
    EXPECT_FALSE(load_demand(disk.path())) << text;
  }
}

}  // namespace
}  // namespace spark::bench
