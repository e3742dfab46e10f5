#include "bench/hosts/merged_record.hpp"

#include <gmock/gmock.h>

#include <cmath>

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

// The first host reads 1 GB/s, the second 3 GB/s, both all of it from the storage.
std::vector<Record> slow_and_fast() {
  std::vector<Record> records;
  for (const auto& [host, factor] : {std::pair{"a", 1U}, std::pair{"b", 3U}}) {
    Record record = record_of(host, {0, 2'000'000'000ULL * factor});
    record.scenarios = {{"shards", "", "", false, false, Cache::Cold}};
    record.idle_cpu = {0.1 * factor, 0.03};
    Cell& cell = record.cells[1];
    cell.origin = {cell.bytes, "block device nvme" + std::to_string(factor) + "n1", cell.bytes};
    cell.opens = 10 * factor;
    cell.cpu = CpuUse{2.5, 1.0 * factor, 0.5 * factor, 0.9, 0.5};
    records.push_back(std::move(record));
  }
  return records;
}

TEST(MergedRecord, TheBytesFromTheStorageAreTheMeanOfTheHostsLikeTheBytesDelivered) {
  const Record merged = merged_record(slow_and_fast());
  const Cell& cell = merged.cells[1];
  EXPECT_EQ(cell.bytes, 4'000'000'000u);
  EXPECT_EQ(cell.origin.bytes, 4'000'000'000u);
  EXPECT_EQ(cell.origin.nic_bytes, 4'000'000'000u);
  EXPECT_EQ(cell.origin.counter, "block device nvme1n1, block device nvme3n1");
  EXPECT_EQ(cell.opens, 20u);
  EXPECT_EQ(summarize(merged, "nfs", "shards").cache, "cold 100 %");
}

TEST(MergedRecord, TheCpuUseByGigabyteIsThatOfAllHosts) {
  const Record merged = merged_record(slow_and_fast());
  EXPECT_DOUBLE_EQ(merged.idle_cpu.cpu_s_per_s, 0.2);
  EXPECT_NEAR(merged.idle_cpu.error, 0.03 / std::sqrt(2), 1e-9);
  EXPECT_DOUBLE_EQ(merged.cells[1].cpu.value().busy_s, 2);
  // Together 4 s of CPU time for 8 GB, and idle hosts would have used 2.5 x 0.4 s of it.
  EXPECT_NEAR(summarize(merged, "nfs", "shards").cpu_per_gb.value(), 3.0 / 8, 1e-9);
}

TEST(MergedRecord, WhatOneHostDidNotCountIsLeftOut) {
  std::vector<Record> records = slow_and_fast();
  records[1].cells[1].origin = {};
  records[1].cells[1].opens.reset();
  records[1].cells[1].cpu.reset();
  const Cell cell = merged_record(records).cells[1];
  EXPECT_FALSE(cell.origin.bytes);
  EXPECT_FALSE(cell.origin.nic_bytes);
  EXPECT_FALSE(cell.opens);
  EXPECT_FALSE(cell.cpu);
}

TEST(MergedRecord, ACopyRoomAndFreeRatesOfOneHostAreNotThoseOfAll) {
  std::vector<Record> records = slow_and_fast();
  records[0].asked.is_staged = true;
  records[0].asked.cache_room = records[1].asked.cache_room = 5'000;
  records[1].asked.cache_room = 2'000;
  records[1].rate_limit = 500'000'000;
  for (Record& record : records) {
    record.paths.resize(1);
    record.paths[0].name = "local";
    record.paths[0].free = 9'000;
    record.paths[0].notes = {"hot"};
  }
  records[1].paths[0].free = 3'000;
  const Record merged = merged_record(records);
  EXPECT_FALSE(merged.asked.is_staged);
  EXPECT_EQ(merged.asked.cache_room, 2'000u);
  EXPECT_EQ(merged.rate_limit, 500'000'000u);
  EXPECT_EQ(merged.paths[0].free, 3'000u);
  EXPECT_THAT(merged.paths[0].notes, ElementsAre("hot", "b: hot"));
  records[1].asked.is_staged = true;
  EXPECT_TRUE(merged_record(records).asked.is_staged);
}

TEST(MergedRecord, WhatNoHostMeasuresForOneReasonNamesNone) {
  std::vector<Record> records = slow_and_fast();
  for (Record& record : records) {
    record.cells[1].status = CellStatus::NotMeasured;
    record.cells[1].reasons = {"this is the path that the others are staged to"};
  }
  EXPECT_THAT(merged_record(records).cells[1].reasons, ElementsAre(records[0].cells[1].reasons[0]));
  records[1].cells[1].reasons = {"it stopped answering during the run"};
  EXPECT_THAT(merged_record(records).cells[1].reasons,
              ElementsAre("a: this is the path that the others are staged to"));
}

TEST(MergedRecord, CautionsOfEachHostNameIt) {
  std::vector<Record> records = slow_and_fast();
  for (Record& record : records) record.cells[1].cautions = {"starved"};
  EXPECT_THAT(merged_record(records).cells[1].cautions, ElementsAre("a: starved", "b: starved"));
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
