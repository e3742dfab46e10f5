// The verdict of runs that measured other work than the job's.
#include <gmock/gmock.h>

#include "bench/verdict/verdict.hpp"
#include "tests/unit/bench/verdict/worked_example.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;

// A run on a dataset of 10 kB files, with measured files of `mean` bytes and staging copies of 200 files.
Record small_files_of(Bytes mean) {
  Record record = worked_example();
  record.asked.dataset_bytes = 200'000'000;
  record.asked.dataset_files = 20'000;
  record.scenarios.push_back({"smallfiles", "small files", "", false, true, Cache::Cold});
  for (PathRecord& path : record.paths) {
    path.small_files = 100;
    path.small_bytes = 100 * mean;
  }
  for (Cell& cell : record.cells) {
    if (cell.scenario == "shards") cell.scenario = "smallfiles";
    if (cell.scenario == "stagecopy") cell.ios = 560'000;
  }
  return record;
}

std::string answer_of(const Record& record) {
  return sentences_of(verdict_of(record)).front();
}

TEST(VerdictWork, MeasuredFilesOfAnotherSizeThanTheDatasetsGiveNoAdvice) {
  for (const Bytes mean : {Bytes{131'072}, Bytes{21'000}, Bytes{4'900}})
    EXPECT_EQ(verdict_of(small_files_of(mean)).decision.advice, Advice::NotDecided) << mean;
  EXPECT_THAT(answer_of(small_files_of(131'072)),
              HasSubstr("'smallfiles' read files of 131 kB on average, those of the dataset have 10.0 kB"));
  for (const Bytes mean : {Bytes{19'000}, Bytes{5'100}})
    EXPECT_EQ(verdict_of(small_files_of(mean)).decision.advice, Advice::StageFirst) << mean;
}

TEST(VerdictWork, TheSizeOfTheFilesThatTheJobReadCountsWithoutADataset) {
  Record record = small_files_of(131'072);
  record.asked.dataset_bytes = record.asked.dataset_files = 0;
  record.asked.demand.mean_file = 10'000;
  EXPECT_THAT(answer_of(record), HasSubstr("Not decided: 'smallfiles' read files of 131 kB"));
}

TEST(VerdictWork, AStagingCopyOfALargeFileGivesNoAdviceOnADatasetOfSmallFiles) {
  Record record = small_files_of(10'000);
  for (Cell& cell : record.cells) {
    if (cell.scenario == "stagecopy") cell.ios = 1;
  }
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::NotDecided);
  EXPECT_THAT(answer_of(record),
              HasSubstr("'stagecopy' of nvme-tcp copied files of 5.60 GB on average, those of "
                        "the dataset have 10.0 kB: measure again"));
}

TEST(VerdictWork, AStagingCopyOfSmallFilesGivesNoAdviceOnADatasetOfLargeFiles) {
  Record record = worked_example();
  for (Cell& cell : record.cells) {
    if (cell.scenario == "stagecopy") cell.ios = 560'000;
  }
  EXPECT_THAT(answer_of(record), HasSubstr("'stagecopy' of nvme-tcp copied files of 10.0 kB on average"));
  record.asked.dataset_files = 0;  // only the size is known
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst);
}

TEST(VerdictWork, HostsThatDidNotReadAtOnceGiveNoAdvice) {
  for (const char* scenario : {"shards", "stagecopy"}) {
    Record record = worked_example();
    record.hosts = {"spark-1", "spark-2"};
    record.paths[2].at_once = {{scenario, 0.79}};
    EXPECT_EQ(verdict_of(record).decision.advice, Advice::NotDecided) << scenario;
    EXPECT_THAT(sentences_of(verdict_of(record)), testing::Not(testing::Contains(HasSubstr("pays from"))));
    EXPECT_THAT(answer_of(record),
                HasSubstr("the hosts measured '" + std::string(scenario) +
                          "' of nfs at once for 79 % of the time only: start them together (--with HOST)"));
    record.paths[2].at_once = {{scenario, 0.8}};
    EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst) << scenario;
  }
}

TEST(VerdictWork, AScenarioThatDoesNotDecideMayBeMeasuredApart) {
  Record record = worked_example();
  record.hosts = {"spark-1", "spark-2"};
  record.paths[2].at_once = {{"latency", 0.1}, {"shards", 1}, {"stagecopy", 1}};
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst);
}

}  // namespace
}  // namespace spark::bench
