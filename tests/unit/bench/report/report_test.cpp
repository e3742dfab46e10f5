#include "bench/report/report.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.hpp"
#include "bench/measure/bench.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Names that would break HTML, Markdown, gnuplot or a terminal unless escaped.
Record hostile_record() {
  Record record = sample_record();
  record.host.name = "<script>alert(1)</script>";
  record.paths[0].path = "/mnt/\"><img src=http://example.org/x>|`id`";
  record.scenarios[0].title = "'; system('touch /tmp/owned') #";
  record.warnings = {"a \x1b[31mred\x07 <b>warning</b>"};
  for (Cell& cell : record.cells) {
    for (std::string& reason : cell.reasons) reason = "=cmd|' /C calc'!A0, \"quoted\"";
  }
  return record;
}

std::size_t count_of(const std::string& text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Page, HasTheVerdictEveryPathEveryScenarioAndItsCharts) {
  const std::string page = html_page(sample_record());
  for (const char* words : {"Not decided", "nvme-tcp", "local", "sequential read", "2.75 GB/s", "MTU 9000",
                            "ran 0.4 s of the 2.0 s asked for", "Not measured"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  EXPECT_EQ(count_of(page, "<svg"), count_of(page, "</svg>"));
  EXPECT_THAT(page, Not(HasSubstr("no charts"))) << "gnuplot-nox is needed to test";
  EXPECT_GE(count_of(page, "<svg"), 3u);
}

TEST(Page, LoadsNothingFromTheNetworkAndRunsNoScripts) {
  const std::string page = html_page(sample_record());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* word :
       {"<script", "<link rel=\"stylesheet", "<img", "@import", "src=\"http", "href=\"http"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

TEST(Page, ChartsTakeThePagesTextColour) {
  const auto charts = draw_charts(sample_record());
  ASSERT_TRUE(charts) << charts.error().message();
  ASSERT_FALSE(charts->scenarios.empty());
  const std::string& picture = charts->scenarios[0].second;
  EXPECT_TRUE(picture.starts_with("<svg"));
  EXPECT_THAT(picture,
              AllOf(HasSubstr("currentColor"), Not(HasSubstr("\"black\"")), Not(HasSubstr("'black'"))));
}

TEST(Reports, AHostileRecordIsEscapedAsText) {
  const Record record = hostile_record();
  EXPECT_THAT(html_page(record),
              AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("<img")), Not(HasSubstr("<b>")),
                    Not(HasSubstr("\x1b")), Not(HasSubstr("no charts"))));
  EXPECT_FALSE(fs::exists("/tmp/owned"));
  EXPECT_THAT(markdown(record), AllOf(HasSubstr("\\|\\`id"), HasSubstr("\\<script"), Not(HasSubstr("\x1b"))));
}

TEST(Reports, EachFormatTellsOfALimit) {
  Record record = sample_record();
  record.rate_limit = 500'000'000;
  for (const std::string& report : {text_table(record), markdown(record), html_page(record)})
    EXPECT_THAT(report, testing::ContainsRegex("eld to 500 MB/s .--rate-limit"));
}

TEST(Reports, AnEmptyRecordDoesNotCrash) {
  EXPECT_FALSE(html_page({}).empty());
  EXPECT_FALSE(markdown({}).empty());
}

TEST(Reports, TheMarkdownMatchesTheGoldenFile) {
  expect_golden("markdown.golden", markdown(sample_record()));
}

// Three equal rounds of a path on a host.
Record rounds_of(const std::string& host, const std::string& run, Bytes bytes) {
  Record record = sample_record();
  record.host.name = host;
  record.run_id = run;
  record.cells.clear();
  for (unsigned round = 0; round <= 3; ++round) {
    Cell cell = valid_cell("nvme-tcp", "shards", round, bytes + round * 1000, 1000, {});
    cell.at_s = 10.0 * round;
    record.cells.push_back(cell);
  }
  return record;
}

Result<std::string> compared(const Record& before, const Record& after, bool any_host) {
  auto comparison = compare_runs(before, after, any_host);
  if (!comparison) return comparison.take_error();
  return text_of(*comparison);
}

TEST(Compare, ADifferenceBeyondTheIntervalsIsReported) {
  const auto slower =
      compared(rounds_of("a", "run-1", 2'000'000'000), rounds_of("a", "run-2", 1'500'000'000), false);
  ASSERT_TRUE(slower) << slower.error().message();
  EXPECT_THAT(*slower, HasSubstr("-25.0 % slower"));
  const auto same =
      compared(rounds_of("a", "run-1", 2'000'000'000), rounds_of("a", "run-2", 2'010'000'000), false);
  EXPECT_THAT(*same, HasSubstr("no clear difference"));
  for (const std::string& line : split(*slower, '\n')) EXPECT_LE(line.size(), 90u) << line;
}

TEST(Compare, HasItsFiguresAsJson) {
  const auto comparison =
      compare_runs(rounds_of("a", "run-1", 2'000'000'000), rounds_of("a", "run-2", 1'500'000'000), false);
  ASSERT_TRUE(comparison);
  const json::object object = to_json(*comparison);
  const json::object& row = get_array(object, "results")->front().as_object();
  EXPECT_EQ(get_string(row, "difference"), "slower");
  EXPECT_EQ(get_string(row, "unit"), "bytes_per_second");
  EXPECT_NEAR(get_double(row, "ratio").value_or(0), 0.75, 1e-4);
  EXPECT_NEAR(get_double(*get_object(row, "after"), "value").value_or(0), 750e6, 1e4);
  EXPECT_EQ(get_string(*get_object(object, "before"), "run_id"), "run-1");
}

TEST(Compare, NamesOtherDifferencesBetweenTheRuns) {
  Record after = rounds_of("a", "run-2", 1'500'000'000);
  after.paths[0].mount->options = "rw";
  after.host.kernel = "6.99";
  const auto text = compared(rounds_of("a", "run-1", 2'000'000'000), after, false);
  EXPECT_THAT(*text, AllOf(HasSubstr("now rw"), HasSubstr("6.99")));
}

TEST(Compare, NamesOtherHostsALimitAndOtherFiles) {
  const Record before = rounds_of("a", "run-1", 2'000'000'000);
  Record after = rounds_of("a", "run-2", 1'500'000'000);
  after.hosts = {"a", "b"};
  after.rate_limit = 500'000'000;
  after.fio.version = "fio-3.40";
  after.paths[0].read_only_reason.clear();
  after.asked.is_staged = true;
  EXPECT_THAT(join(compare_runs(before, after, false)->other_settings, "; "),
              AllOf(HasSubstr("it was measured on one host, now a, b at once"),
                    HasSubstr("it was held to no rate, now 500 MB/s"),
                    HasSubstr("fio was fio-3.33 with io_uring, now fio-3.40"),
                    HasSubstr("nvme-tcp has other files or another folder"),
                    HasSubstr("only one had a staged copy; the verdicts answer different questions")));
  EXPECT_TRUE(compare_runs(before, rounds_of("a", "run-2", 1'500'000'000), false)->other_settings.empty());
  Record slash = before, link = before;
  slash.paths[0].path += "/";
  slash.paths[0].folder = link.paths[0].folder = "/mnt/a";
  EXPECT_TRUE(compare_runs(link, slash, false)->other_settings.empty());
  link.paths[0].folder = "/mnt/b";
  EXPECT_FALSE(compare_runs(link, slash, false)->other_settings.empty()) << "the link leads elsewhere now";
}

TEST(Compare, RunsOfDifferentDemandsAreNotComparedByTheDemand) {
  Record before = rounds_of("a", "run-1", 2'000'000'000), after = rounds_of("a", "run-2", 2'000'000'000);
  for (Record* record : {&before, &after}) {
    record->scenarios.push_back({"demand", "read at demand", "", false, false, Cache::Direct});
    for (unsigned round = 1; round <= 3; ++round)
      record->cells.push_back(valid_cell("nvme-tcp", "demand", round, 1'000'000'000, 1000, {}));
    record->asked.demand.bytes_per_second = 500e6;
  }
  EXPECT_THAT(compared(before, after, false).value(), Not(HasSubstr("different questions")));
  after.asked.demand.bytes_per_second = 3.2e9;
  const auto comparison = compare_runs(before, after, false);
  ASSERT_TRUE(comparison) << comparison.error().message();
  for (const ComparedRow& row : comparison->rows) EXPECT_NE(row.scenario, "demand");
  EXPECT_THAT(join(comparison->other_settings, "; "),
              AllOf(HasSubstr("the job's read rate was 500 MB/s, now 3.20 GB/s"),
                    HasSubstr("the verdicts answer different questions")));
}

TEST(Compare, DifferentHostsNeedAnOptionAndUnrelatedRecordsAreRefused) {
  const Record one = rounds_of("a", "run-1", 2'000'000'000);
  const Record other = rounds_of("b", "run-2", 1'500'000'000);
  EXPECT_EQ(compare_runs(one, other, false).error().kind, Errc::Refused);
  EXPECT_TRUE(compare_runs(one, other, true));
  Record stranger = one;
  stranger.scenarios.clear();
  EXPECT_EQ(compare_runs(one, stranger, true).error().kind, Errc::Invalid);
}

TEST(Merge, RatesOfHostsThatReadSimultaneouslyAreAdded) {
  const auto text = merge_runs({rounds_of("a", "r", 2'000'000'000), rounds_of("b", "r", 1'000'000'000)});
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("1.50 GB/s"), HasSubstr("500 MB/s"), HasSubstr("100 %"),
                           Not(HasSubstr("Not at once"))));
}

TEST(Merge, HostsThatDidNotReadSimultaneouslyAreReported) {
  Record later = rounds_of("b", "r", 1'000'000'000);
  later.started += std::chrono::seconds(5);
  const auto text = merge_runs({rounds_of("a", "r", 2'000'000'000), later});
  EXPECT_THAT(*text, HasSubstr("Not at once: shards of nvme-tcp"));
  later.paths[0].storage.address = "192.168.0.101";
  EXPECT_THAT(*merge_runs({rounds_of("a", "r", 2'000'000'000), later}), HasSubstr("different"));
}

TEST(Merge, ASingleRecordOrADuplicateIsRefused) {
  const Record one = rounds_of("a", "r", 2'000'000'000);
  EXPECT_FALSE(merge_runs({one}));
  EXPECT_FALSE(merge_runs({one, one}));
}

TEST(List, NamesEachRunIncludingUnreadableOnes) {
  const std::string text = list_of_runs({{"run-1", "", sample_record()}, {"run-2", "broken", {}}});
  EXPECT_THAT(text, AllOf(HasSubstr("nvme-tcp local"), HasSubstr("unreadable"), HasSubstr("complete")));
  EXPECT_THAT(list_of_runs({}), HasSubstr("No run"));
  const json::object object =
      to_json(std::vector<RunEntry>{{"run-1", "", sample_record()}, {"run-2", "broken", {}}});
  const json::array& runs = *get_array(object, "runs");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(get_string(runs[0].as_object(), "state"), "complete");
  EXPECT_EQ(get_string(runs[1].as_object(), "problem"), "broken");
}

}  // namespace
}  // namespace spark::bench
