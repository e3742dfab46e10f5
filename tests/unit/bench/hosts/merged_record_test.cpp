#include "bench/hosts/merged_record.hpp"

#include <gmock/gmock.h>

#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Record record_of(const std::string& host, const std::vector<Bytes>& rounds) {
  Record record;
  record.host.name = host;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    record.cells.push_back(
        valid_cell("nfs", "shards", static_cast<unsigned>(i), rounds[i], 10, {{1000, 10}}));
  return record;
}

TEST(MergedRecord, HasTheMeanOfTheHostsRatesInEachRound) {
  Record slower = record_of("b", {2'000, 3'000});
  slower.cells[1].seconds = 4;  // 750 B/s beside 2,500 B/s
  const Record merged = merged_record({record_of("a", {4'000, 5'000}), slower});
  EXPECT_THAT(merged.hosts, ElementsAre("a", "b"));
  EXPECT_EQ(merged.cells[0].bytes, 3'000u);
  EXPECT_EQ(merged.cells[1].bytes, 3'250u) << "in the two seconds of the first host";
  EXPECT_EQ(merged.cells[1].bins.at(1000), 20u);
}

TEST(MergedRecord, TheFreeMemoryOfOneHostIsNotThatOfAll) {
  Record one = record_of("a", {4'000});
  one.cells[0].memory = FreeMemory{100, 50, {}};
  EXPECT_FALSE(merged_record({one, record_of("b", {4'000})}).cells[0].memory);
}

TEST(MergedRecord, ACellWithoutAResultOnOneHostNamesThatHost) {
  Record broken = record_of("b", {2'000, 3'000});
  broken.cells[0].status = CellStatus::Invalid;
  broken.cells[0].reasons = {"too short"};
  broken.cells.pop_back();
  const Record merged = merged_record({record_of("a", {4'000, 5'000}), broken});
  EXPECT_EQ(merged.cells[0].status, CellStatus::Invalid);
  EXPECT_THAT(merged.cells[0].reasons, ElementsAre("b: too short"));
  EXPECT_THAT(merged.cells[1].reasons, ElementsAre("b: not measured"));
}

TEST(MergedRecord, WarnsOfAScenarioThatTheHostsDidNotMeasureAtOnce) {
  Record first = record_of("a", {1'000, 1'000, 1'000});
  first.scenarios = {{"shards", "", "", false, false, Cache::Direct}};
  first.paths.resize(1);
  first.paths[0].name = "nfs";
  first.paths[0].storage.kind = PathKind::Nas;
  for (Cell& cell : first.cells) cell.at_s = 10 * cell.round;
  Record second = first;
  second.host.name = "b";
  second.started += std::chrono::milliseconds(300);  // 85 % of 2 s are shared
  Record merged = merged_record({first, second});
  EXPECT_THAT(merged.warnings, testing::IsEmpty());
  ASSERT_EQ(merged.paths[0].at_once.size(), 1u);
  EXPECT_EQ(merged.paths[0].at_once[0].scenario, "shards");
  EXPECT_NEAR(merged.paths[0].at_once[0].share, 0.85, 1e-6);
  second.started += std::chrono::milliseconds(900);
  merged = merged_record({first, second});
  EXPECT_THAT(merged.warnings,
              ElementsAre("the hosts measured 'shards' of nfs at once for 40 % of the time only"));
  const auto kept = record_from_json(to_json(merged));
  ASSERT_TRUE(kept) << kept.error().message();
  ASSERT_EQ(kept->paths[0].at_once.size(), 1u);
  EXPECT_NEAR(kept->paths[0].at_once[0].share, 0.4, 1e-6);
}

TEST(MergedRecord, ALocalDriveIsNotSharedByTheHosts) {
  Record first = record_of("a", {1'000, 1'000});
  first.scenarios = {{"shards", "", "", false, false, Cache::Direct}};
  first.paths.resize(1);
  first.paths[0].name = "nfs";
  first.paths[0].storage.kind = PathKind::Local;
  Record second = first;
  second.started += std::chrono::hours(1);
  const Record merged = merged_record({first, second});
  EXPECT_THAT(merged.warnings, testing::IsEmpty());
  EXPECT_THAT(merged.paths[0].at_once, testing::IsEmpty());
}

TEST(MergedRecord, IsInterruptedIfAnyHostWas) {
  Record other = record_of("b", {1});
  other.interrupted = true;
  other.warnings = {"hot"};
  const Record merged = merged_record({record_of("a", {1}), other});
  EXPECT_TRUE(merged.interrupted);
  EXPECT_THAT(merged.warnings, Contains(HasSubstr("b: hot")));
}

}  // namespace
}  // namespace spark::bench
