#include "bench/verdict/loading.hpp"

#include <gmock/gmock.h>

#include "bench/report/report.hpp"
#include "tests/unit/bench/loading_record.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> answer_to(const Record& record) {
  return sentences_of(verdict_of(record));
}

void set_rates(Record& record, const std::string& path, double factor) {
  for (Cell& cell : record.cells) {
    if (cell.path == path) cell.seconds *= factor;
  }
}

TEST(LoadingVerdict, GivesTheTimesTheGainOfStagingAndTheMemory) {
  EXPECT_THAT(
      answer_to(loading_record()),
      ElementsAre(
          "A model of 16.0 GB loads in 8.0 s from local by direct reads (2.00 GB/s), in 32.0 s from "
          "nfs by direct reads (500 MB/s).",
          "Staged on local, each load takes 24.0 s less than from nfs; the time of the copy is not in "
          "this.",
          "By mapped reads, as safetensors loads unless told otherwise, in 16.0 s from local, in 1 "
          "min 04 s from nfs.",
          "Mapped and buffered reads leave 16.0 GB in the page cache, so much less free memory, until "
          "`spark-stage drop`; direct reads leave none.",
          "Calculated from loads of 4.00 GB (--size)."));
  EXPECT_EQ(verdict_of(loading_record()).decision.advice, Advice::StageFirst);
}

TEST(LoadingVerdict, WithoutAModelsSizeTheLoadedBytesAreTheModel) {
  Record record = loading_record();
  record.asked.dataset_bytes = 0;
  const auto sentences = answer_to(record);
  EXPECT_THAT(sentences.front(), HasSubstr("A model of 4.00 GB loads in 2.0 s from local"));
  EXPECT_THAT(sentences, Contains(HasSubstr("Assumed: the model is as large as what was loaded")));
}

TEST(LoadingVerdict, APathThatLoadsAsFastAsTheLocalDriveNeedsNoStaging) {
  Record record = loading_record();
  set_rates(record, "nfs", 0.25);
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::NoClearDifference);
  EXPECT_THAT(answer_to(record), Contains("Loading from nfs and from local shows no clear difference."));
  set_rates(record, "nfs", 0.5);
  EXPECT_EQ(get_string(to_json(verdict_of(record)), "advice"), "load_directly");
  EXPECT_THAT(answer_to(record), Contains("From nfs, each load takes 4.0 s less than staged on local."));
}

TEST(LoadingVerdict, OnePathGivesItsTimesAndNoAdvice) {
  Record record = loading_record();
  record.paths.erase(record.paths.begin());
  const auto sentences = answer_to(record);
  EXPECT_THAT(sentences[0], HasSubstr("A model of 16.0 GB loads in 8.0 s from local"));
  EXPECT_THAT(sentences[1],
              HasSubstr("Whether to stage it is not decided: loading from the local drive and"));
}

TEST(LoadingVerdict, ResultsThatFailedAGateAreExcluded) {
  Record record = loading_record();
  for (Cell& cell : record.cells) {
    if (cell.path != "nfs") continue;
    cell.status = CellStatus::Invalid;
    cell.reasons = {"not cold: RAM served it"};
  }
  EXPECT_THAT(answer_to(record),
              AllOf(Contains("Note: nfs is left out: 'load-mmap' of nfs has no valid result: not cold: RAM "
                             "served it."),
                    Contains(HasSubstr("Whether to stage it is not decided"))));
  for (Cell& cell : record.cells) cell.status = CellStatus::Invalid;
  EXPECT_THAT(answer_to(record).front(), HasSubstr("Not decided: no path has three valid rounds of loading"));
}

TEST(LoadingVerdict, AnInterruptedOrThrottledRunDecidesNothing) {
  Record record = loading_record();
  record.interrupted = true;
  EXPECT_THAT(answer_to(record)[1], "Whether to stage it is not decided: the run was interrupted.");
  record.interrupted = false;
  record.rate_limit = 500'000'000;
  EXPECT_EQ(answer_to(record)[0], "Not decided: the run was held to 500 MB/s (--rate-limit).");
  EXPECT_THAT(answer_to(record), Not(Contains(HasSubstr(" loads in "))));
  EXPECT_THAT(answer_to(record), Contains(HasSubstr("reads leave 16.0 GB in the page cache")));
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::NotDecided);
}

TEST(LoadingVerdict, HostsThatDidNotLoadAtOnceDecideNothing) {
  Record record = loading_record();
  record.hosts = {"spark-1", "spark-2"};
  record.paths[0].at_once = {{"load-mmap", 0.5}, {"load-direct", 0.9}};
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst) << "direct reads are the quickest";
  record.paths[0].at_once[1].share = 0.5;
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::NotDecided);
  EXPECT_THAT(answer_to(record),
              Contains(HasSubstr("'load-direct' of nfs at once for 50 % of the time only")));
  EXPECT_THAT(answer_to(record), Not(Contains(HasSubstr(" loads in "))));
}

TEST(LoadingVerdict, AModelLargerThanTheMemoryOrTheLocalDriveIsNamed) {
  Record record = loading_record();
  record.asked.dataset_bytes = 5'000'000'000'000;
  EXPECT_THAT(answer_to(record),
              AllOf(Contains("It can't be staged: local has not enough space."),
                    Not(Contains(HasSubstr("Staged on local"))),
                    Contains(HasSubstr("reads leave as much of it as fits in the page cache")),
                    Contains(HasSubstr("Note: the model is larger than this host's memory (128 GB)"))));
  EXPECT_EQ(get_string(to_json(verdict_of(record)), "advice"), "load_directly");
  record.asked.is_staged = true;
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst) << "it is there already";
}

TEST(LoadingVerdict, WithoutTheKernelsWordOnThePageCacheFreeMemoryCounts) {
  Record record = loading_record();
  for (Cell& cell : record.cells) cell.memory->cached.reset();
  EXPECT_THAT(answer_to(record), Contains(HasSubstr("Mapped and buffered reads leave 16.0 GB in the page")));
  EXPECT_THAT(text_table(record), HasSubstr("26.0 GB, 4.01 GB less"));
  for (Cell& cell : record.cells) cell.memory.reset();
  EXPECT_THAT(answer_to(record), Not(Contains(HasSubstr("page cache"))));
}

TEST(LoadingVerdict, HostsThatLoadAtOnceShareTheTargetsRate) {
  Record record = loading_record();
  record.asked.nodes = 4;
  const auto sentences = answer_to(record);
  EXPECT_THAT(sentences.front(), HasSubstr("2 min 08 s from nfs"));
  EXPECT_THAT(sentences.back(), HasSubstr("Assumed: 4 hosts that load at once"));
}

TEST(LoadingVerdict, AnswersOnlyItsOwnQuestion) {
  Record record = loading_record();
  record.asked.loads_model = false;
  EXPECT_TRUE(verdict_of(record).loading) << "nothing else was measured or asked";
  record.asked.demand.bytes_per_second = 1e9;
  EXPECT_FALSE(verdict_of(record).loading);
  Record other = sample_record();
  other.asked.loads_model = true;
  EXPECT_THAT(answer_to(other).front(), HasSubstr("--like model-load"));
}

TEST(LoadingReport, TableMarkdownPageAndJsonTellTimeAndFreeMemory) {
  const Record record = loading_record();
  const std::string table = text_table(record);
  expect_golden("loading.golden", table);
  EXPECT_THAT(markdown(record),
              AllOf(HasSubstr("| free memory after loading |"), HasSubstr("| 16.0 s, 250 MB/s |"),
                    HasSubstr("26.0 GB, 4.00 GB cached")));
  EXPECT_THAT(html_page(record),
              AllOf(HasSubstr("<th>free memory after loading</th>"), HasSubstr("26.0 GB, 4.00 GB cached")));
  EXPECT_THAT(html_page(sample_record()), Not(HasSubstr("free memory")));
  const json::object json = to_json(record);
  const json::object& summary = get_array(json, "summary")->front().as_object();
  EXPECT_EQ(get_int(*get_object(summary, "free_memory_bytes"), "less"), 4'010'000'000);
  EXPECT_DOUBLE_EQ(get_double(*get_object(summary, "seconds_to_loaded"), "median").value(), 16);
  const json::object& loading = *get_object(*get_object(json, "verdict"), "loading");
  EXPECT_EQ(get_int(loading, "model_bytes"), 16'000'000'000);
  EXPECT_EQ(get_array(loading, "times")->size(), 6u);
  const auto again = record_from_json(json);
  ASSERT_TRUE(again);
  EXPECT_EQ(text_table(*again), table);
}

TEST(LoadingReport, RunsAreComparedByTheRateOfLoading) {
  Record slower = loading_record();
  set_rates(slower, "nfs", 2);
  const auto comparison = compare_runs(loading_record(), slower, false);
  ASSERT_TRUE(comparison);
  EXPECT_THAT(text_of(*comparison), AllOf(HasSubstr("load-mmap"), HasSubstr("-50.0 % slower"),
                                          HasSubstr("Before: A model of 16.0 GB loads")));
  Record other = loading_record();
  other.asked.loads_model = false;
  EXPECT_THAT(compare_runs(loading_record(), other, false)->other_settings,
              Contains("only one asks about loading a model"));
}

}  // namespace
}  // namespace spark::bench
