#include "bench/record/overlap.hpp"

#include <gtest/gtest.h>

#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {
namespace {

// Three rounds of 2 s each, ten seconds apart.
Record rounds_begun_at(WallTime start) {
  Record record;
  record.started = start;
  for (unsigned round = 1; round <= 3; ++round) {
    record.cells.push_back(valid_cell("nfs", "shards", round, 1000, 10, {}));
    record.cells.back().at_s = 10.0 * round;
    record.cells.back().order = round;
  }
  return record;
}

const WallTime kFirstStart{std::chrono::milliseconds(1'795'191'686'900)};
const std::set<unsigned> kThreeRounds = {1, 2, 3};

double overlap_in_shards(const std::vector<Record>& records) {
  return overlap_of(records, "nfs", "shards", kThreeRounds);
}

TEST(Overlap, FractionsOfASecondCountAlsoInKeptRecords) {
  const Record first = rounds_begun_at(kFirstStart),
               second = rounds_begun_at(kFirstStart + std::chrono::milliseconds(200));
  EXPECT_NEAR(overlap_in_shards({first, second}), 0.9, 1e-6);
  const auto kept = record_from_json(to_json(second));
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_NEAR(overlap_in_shards({first, *kept}), 0.9, 1e-6) << "the start in the record has no fraction";
}

TEST(Overlap, IsTheSmallestShareOfAnyHost) {
  Record longer = rounds_begun_at(kFirstStart);
  for (Cell& cell : longer.cells) cell.seconds = 4;
  EXPECT_NEAR(overlap_in_shards({rounds_begun_at(kFirstStart), longer}), 0.5, 1e-6);
  EXPECT_NEAR(overlap_in_shards(
                  {rounds_begun_at(kFirstStart), rounds_begun_at(kFirstStart + std::chrono::seconds(5))}),
              0, 1e-6);
}

TEST(Overlap, OnlyTheGivenRoundsAndHostsWithValidCellsCount) {
  Record broken = rounds_begun_at(kFirstStart);
  broken.cells[2].status = CellStatus::Invalid;
  const std::vector<Record> records = {rounds_begun_at(kFirstStart), broken};
  EXPECT_NEAR(overlap_in_shards(records), 2.0 / 3, 1e-6);
  EXPECT_NEAR(overlap_of(records, "nfs", "shards", {1, 2}), 1, 1e-6);
  EXPECT_NEAR(overlap_in_shards({rounds_begun_at(kFirstStart), Record()}), 1, 1e-6);
}

TEST(Overlap, HostsInStepAreComparedByTheirStepsIfTheirClocksDiffer) {
  std::vector<Record> records = {rounds_begun_at(kFirstStart),
                                 rounds_begun_at(kFirstStart + std::chrono::minutes(3))};
  records[1].cells[1].at_s += 1;  // a delay in one round is none of the clock
  align_clocks(records);
  EXPECT_NEAR(overlap_in_shards(records), 5.0 / 6, 1e-6);
  EXPECT_EQ(records[0].started, kFirstStart);
}

}  // namespace
}  // namespace spark::bench
