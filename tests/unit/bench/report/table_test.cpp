#include <gmock/gmock.h>

#include "base/text.hpp"
#include "bench/measure/bench.hpp"
#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void expect_80_columns(const std::string& text) {
  for (const std::string& line : split(text, '\n')) EXPECT_LE(columns_of(line), 80u) << line;
}

TEST(Table, MatchesTheGoldenFile) {
  const std::string table = text_table(sample_record());
  expect_golden("table.golden", table);
  expect_80_columns(table);
}

TEST(Table, ManyPathsWithLongNamesStayWithin80Columns) {
  Record record = sample_record();
  for (int i = 0; i < 5; ++i) {
    PathRecord path = record.paths[0];
    path.name = "a-name-that-is-as-long-as-names-may-be-" + std::to_string(i);
    path.path = "/" + std::string(200, 'x');
    record.paths.push_back(path);
    record.cells.push_back(
        valid_cell(path.name, "latency", 1, 8'000'000'000, 2'000'000, {{10'500'000'000, 2'000'000}}));
    record.cells.push_back(failed_cell(path.name, "latency", 2, CellStatus::Invalid, "why " + path.name));
  }
  const std::string table = text_table(record);
  expect_80_columns(table);
  EXPECT_THAT(table, HasSubstr("1.00M IOPS"));
}

TEST(Table, AnInterruptedRunIsMarkedAndAnEmptyOneDoesNotCrash) {
  Record record = sample_record();
  record.interrupted = true;
  record.cells.clear();
  EXPECT_THAT(text_table(record), AllOf(HasSubstr("INTERRUPTED"), HasSubstr("not measured")));
  EXPECT_FALSE(text_table({}).empty());
}

TEST(Table, ExternalNamesCannotControlTheTerminal) {
  Record record = sample_record();
  record.paths[0].path = "/mnt/\x1b[31mred";
  record.warnings = {"bad \x07 bell"};
  EXPECT_THAT(text_table(record), Not(HasSubstr("\x1b")));
  EXPECT_THAT(text_table(record), Not(HasSubstr("\x07")));
}

TEST(ProgressLine, FitsALineAndKeepsTheTimeLeft) {
  Progress progress;
  progress.path = "nvme-tcp";
  progress.doing = "sequential read, 1 MiB, QD 8 x 4";
  progress.cell = 7;
  progress.cells = 45;
  progress.bytes_per_second = 412e6;
  progress.left = Duration(80'000);
  EXPECT_EQ(progress_line(progress),
            "[7/45] nvme-tcp: sequential read, 1 MiB, QD 8 x 4  412 MB/s  1 min 20 s left");
  progress.path = std::string(100, 'x');
  EXPECT_LE(columns_of(progress_line(progress)), 79u);
  EXPECT_THAT(progress_line(progress), HasSubstr("1 min 20 s left"));
}

}  // namespace
}  // namespace spark::bench
