#include "bench/record/record.hpp"

#include <gtest/gtest.h>

#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {
namespace {

TEST(Record, ASummaryCountsValidRoundsOnlyAndKeepsTheReasonsOfTheOthers) {
  const Record record = sample_record();
  const Summary shards = summarize(record, "nvme-tcp", "shards");
  EXPECT_EQ(shards.status, CellStatus::Valid);
  EXPECT_EQ(shards.rates, (std::vector<double>{2.5e9, 3e9}));
  EXPECT_EQ(sample_count(shards.bins), 11'000u);
  EXPECT_EQ(shards.reasons.size(), 1u);
  const Summary latency = summarize(record, "nvme-tcp", "latency");
  EXPECT_EQ(latency.status, CellStatus::Invalid);
  EXPECT_TRUE(latency.rates.empty());
  EXPECT_EQ(latency.reasons.size(), 1u) << "three times the same reason is one";
  EXPECT_EQ(summarize(record, "nvme-tcp", "checkpoint").status, CellStatus::NotMeasured);
}

TEST(Record, TheKernelsCpuTimeIsNoMoreThanTheWhole) {
  Record record = sample_record();
  record.idle_cpu = {0.5, 0.01};
  for (Cell& cell : record.cells) cell.cpu = CpuUse{2, 2, 1.8, 0.9, 0.5};
  const Summary shards = summarize(record, "local", "shards");
  ASSERT_TRUE(shards.cpu_per_gb);
  EXPECT_NEAR(*shards.cpu_per_gb, 3.0 / 42, 1e-9)
      << "three rounds of 2 s less 1 s of an idle host, for 42 GB";
  EXPECT_EQ(shards.kernel_cpu_per_gb, shards.cpu_per_gb);
}

TEST(Record, OnlyValidCellsAreResults) {
  Record record = sample_record();
  EXPECT_TRUE(has_results(record));
  for (Cell& cell : record.cells) cell.status = CellStatus::Invalid;
  EXPECT_FALSE(has_results(record));
}

TEST(Record, TheBaselineIsTheLocalPathOrElseTheFirst) {
  Record record = sample_record();
  EXPECT_EQ(baseline_of(record), 1u);
  record.paths[1].name = "disk";
  EXPECT_EQ(baseline_of(record), 1u) << "the first that is local";
  record.paths[1].storage.kind = PathKind::Nas;
  EXPECT_EQ(baseline_of(record), 0u);
}

TEST(Record, TheJsonHasTheFieldsOfAReport) {
  const json::object record = to_json(sample_record());
  EXPECT_EQ(get_string(record, "schema"), "spark-stage-bench/2");
  EXPECT_EQ(get_string(record, "started"), "2026-11-20T16:21:26.000Z");
  EXPECT_EQ(get_string(record, "seed"), "18446744073709551615") << "a string: JSON numbers stop at 2^53";
  EXPECT_EQ(get_string(record, "baseline"), "local");
  const json::object& path = get_array(record, "paths")->at(0).as_object();
  EXPECT_EQ(get_bool(path, "read_only"), true);
  EXPECT_EQ(get_string(*get_object(path, "mount"), "options"), "ro,noatime,norecovery");
  EXPECT_EQ(get_array(path, "files")->size(), 2u);
  const json::object& cell = get_array(record, "cells")->at(0).as_object();
  EXPECT_EQ(get_string(cell, "status"), "valid");
  EXPECT_EQ(get_string(cell, "command"), "fio '--name=two words'");
  EXPECT_DOUBLE_EQ(get_double(cell, "bytes_per_second").value(), 6.5e9);
  EXPECT_EQ(get_int(*get_object(cell, "latency_ns_bins"), "2000000"), 12'000);
}

TEST(Record, TheJsonSummaryGivesMedianRangeAndMergedPercentiles) {
  const json::object record = to_json(sample_record());
  const json::array& summaries = *get_array(record, "summary");
  ASSERT_EQ(summaries.size(), 6u);
  const json::object& shards = summaries.at(1).as_object();
  EXPECT_EQ(get_string(shards, "path"), "local");
  EXPECT_DOUBLE_EQ(get_double(*get_object(shards, "bytes_per_second"), "median").value(), 7e9);
  EXPECT_DOUBLE_EQ(get_double(*get_object(shards, "bytes_per_second"), "max").value(), 7.5e9);
  EXPECT_EQ(get_int(*get_object(shards, "latency_ns"), "p50"), 2'000'000);
  EXPECT_EQ(get_int(*get_object(shards, "latency_ns"), "p99"), 9'000'000);
  const json::object& failed = summaries.at(4).as_object();
  EXPECT_EQ(get_string(failed, "status"), "invalid");
  EXPECT_FALSE(failed.contains("bytes_per_second"));
}

}  // namespace
}  // namespace spark::bench
