#include "bench/verdict/verdict.hpp"

#include <gmock/gmock.h>

#include "tests/unit/bench/verdict/worked_example.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Verdict, GivesTheDurationsAndTheEpochFromWhichStagingPays) {
  const Verdict verdict = verdict_of(worked_example());
  EXPECT_EQ(verdict.judged_by, "shards");
  EXPECT_EQ(verdict.local, "local");
  EXPECT_EQ(verdict.decision.advice, Advice::StageFirst);
  const auto sentences = sentences_of(verdict);
  EXPECT_EQ(sentences.front(),
            "Stage first: 30 epochs of 1.20 TB take 1 h 39 min staged from nvme-tcp, 1 h 55 min less than "
            "read from "
            "nvme-tcp directly.");
  EXPECT_THAT(sentences,
              Contains("Staging from nfs pays from epoch 2 (break-even after 1.20 epochs, 95 %: 1.20 to "
                       "1.20)."));
}

TEST(Verdict, NamesTheCommandThatStagesDuringTheFirstEpoch) {
  const Verdict verdict = verdict_of(worked_example());
  EXPECT_THAT(
      sentences_of(verdict),
      Contains("Staged from nvme-tcp during the first epoch (`spark-stage run --now`), 30 epochs take "
               "about 1 h 36 min (95 %: 1 h 36 min to 1 h 36 min): the first one lasts as long as the "
               "copy or the job, whichever is slower."));
  const json::object shown = to_json(verdict);
  const json::object& meanwhile = *get_object(shown, "meanwhile");
  EXPECT_EQ(get_string(meanwhile, "command"), "spark-stage run --now");
  EXPECT_EQ(get_double(shown, "streaming_s"), get_double(*get_object(meanwhile, "seconds"), "value"));
  Record staged = worked_example();
  staged.asked.is_staged = true;
  EXPECT_TRUE(to_json(verdict_of(staged)).at("meanwhile").is_null());
}

TEST(Verdict, OneEpochTakesItsTime) {
  Record record = worked_example();
  record.asked.epochs = 1;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("1 epoch of 1.20 TB takes "));
}

TEST(Verdict, CautionsFollowTheAnswer) {
  Record record = worked_example();
  record.paths[1].storage.kind = PathKind::Memory;
  record.asked.demand.cautions = {"the job maps its files"};
  const auto sentences = sentences_of(verdict_of(record));
  EXPECT_EQ(sentences[1], "Caution: the job maps its files.");
  EXPECT_THAT(sentences[2], HasSubstr("Caution: local is in this host's memory"));
}

// With checkpoints two answers are first.
TEST(Verdict, AnswersIsWhatAComparisonShowsOfIt) {
  Record record = worked_example();
  record.asked.checkpoint = checkpoint_like("llama3-8b");
  record.asked.demand.cautions = {"the job maps its files"};
  const auto answers = answers_of(verdict_of(record)), sentences = sentences_of(verdict_of(record));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(std::equal(answers.begin(), answers.end(), sentences.begin()));
  EXPECT_EQ(answers.back(), "Caution: the job maps its files.");
}

TEST(Verdict, NamesTheDemandAndAPathThatNeverPays) {
  Record record = worked_example();
  record.asked.demand = demand_like("8xresnet50").value();
  record.asked.epochs = 3;
  const auto sentences = sentences_of(verdict_of(record));
  EXPECT_THAT(sentences.front(), HasSubstr("Train directly"));
  EXPECT_THAT(sentences,
              Contains("Staging from nvme-tcp never pays: an epoch from the local drive takes no less."));
  EXPECT_THAT(sentences, Contains("The job consumes 1.64 GB/s (resnet50 on 8 H100, what-if of MLPerf "
                                  "Storage): nvme-tcp feeds 100 % of it, "
                                  "nfs feeds 67 % of it, local 100 %."));
}

TEST(Verdict, ResultsThatFailedAGateAreExcluded) {
  Record record = worked_example();
  for (Cell& cell : record.cells) {
    if (cell.path != "nvme-tcp" || cell.scenario != "shards") continue;
    cell.status = CellStatus::Invalid;
    cell.reasons = {"not from the storage"};
  }
  const Verdict verdict = verdict_of(record);
  EXPECT_EQ(verdict.decision.advice, Advice::StageFirst);
  EXPECT_EQ(verdict.decision.staged->source, "nfs");
  EXPECT_THAT(sentences_of(verdict),
              Contains(HasSubstr("nvme-tcp is left out: 'shards' of nvme-tcp has no valid "
                                 "result: not from the storage")));
}

TEST(Verdict, IsNotDecidedWithoutTheLocalDrive) {
  Record record = worked_example();
  for (Cell& cell : record.cells) {
    if (cell.path == "local" && cell.round > 2) cell.status = CellStatus::Invalid;
  }
  const Verdict verdict = verdict_of(record);
  EXPECT_EQ(verdict.decision.advice, Advice::NotDecided);
  EXPECT_THAT(sentences_of(verdict).front(),
              HasSubstr("Not decided: 'shards' of local has 2 valid rounds, three are needed"));
}

TEST(Verdict, IsNotDecidedByAnInterruptedOrAThrottledRun) {
  Record record = worked_example();
  record.interrupted = true;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("interrupted"));
  record = worked_example();
  record.rate_limit = 500'000'000;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("held to 500 MB/s"));
}

// The limit makes all paths equal.
TEST(Verdict, AThrottledRunTellsNoBreakEvenNoTimeAndNoShare) {
  Record record = worked_example();
  for (Cell& cell : record.cells) cell.bytes = 1'000'000'000;
  record.rate_limit = 500'000'000;
  for (const double demand : {0.0, 3.2e9}) {
    record.asked.demand.bytes_per_second = demand;
    const auto sentences = sentences_of(verdict_of(record));
    for (const char* words : {"pays", "feeds", "gains", "takes no less"})
      EXPECT_THAT(sentences, Not(Contains(HasSubstr(words))));
    EXPECT_THAT(sentences, Contains(HasSubstr("nfs reads 500 MB/s"))) << "as the table does";
    const json::object shown = to_json(verdict_of(record));
    EXPECT_TRUE(get_array(shown, "ways")->empty());
    const json::object& source = get_array(shown, "sources")->front().as_object();
    EXPECT_FALSE(source.contains("pays_from_epoch"));
    EXPECT_TRUE(source.at("fed_share").is_null());
  }
}

TEST(Verdict, ADatasetLargerThanTheFreeSpaceIsTrainedDirectly) {
  Record record = worked_example();
  record.paths[1].free = 1'000'000'000'000;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("not enough space"));
  record.asked.dataset_bytes = record.asked.dataset_files = 0;
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst) << "an assumed size is refused by nobody";
  EXPECT_THAT(sentences_of(verdict_of(record)).back(), HasSubstr("Assumed: a dataset of 1.00 TB"));
}

TEST(Verdict, ADatasetThatFitsIntoMemoryIsNoted) {
  Record record = worked_example();
  record.asked.dataset_bytes = 100'000'000'000;
  record.asked.dataset_files = 10;
  EXPECT_THAT(sentences_of(verdict_of(record)), Contains(HasSubstr("from RAM on any path")));
}

TEST(Verdict, ADatasetOfSmallFilesIsJudgedByReadingSmallFiles) {
  Record record = worked_example();
  record.asked.dataset_files = 10'000'000;
  const Verdict unmeasured = verdict_of(record);
  EXPECT_EQ(unmeasured.decision.advice, Advice::NotDecided);
  EXPECT_EQ(
      sentences_of(unmeasured).front(),
      "Not decided: 'smallfiles' was not measured, the scenario that reads as this job does (whole files of "
      "120 kB on average): measure again with --scenario smallfiles --scenario stagecopy.");
  record.scenarios.push_back({"smallfiles", "small files", "", false, true, Cache::Cold});
  EXPECT_EQ(verdict_of(record).judged_by, "smallfiles");
}

TEST(Verdict, LargeFilesAreJudgedByTheJobsObservedReadOrder) {
  Record record = worked_example();
  record.scenarios.push_back({"samples", "random read", "", false, false, Cache::Cold});
  EXPECT_EQ(verdict_of(record).judged_by, "shards");
  EXPECT_THAT(sentences_of(verdict_of(record)),
              Contains(HasSubstr("Measured by 'shards': nvme-tcp reads 2.80 GB/s")));
  record.scenarios.push_back({"stream", "streamed read", "", false, false, Cache::Cold});
  EXPECT_EQ(verdict_of(record).judged_by, "stream");
  record.asked.demand.order = ReadOrder::Random;
  EXPECT_EQ(verdict_of(record).judged_by, "samples");
}

TEST(Verdict, WithoutADatasetTheObservedFileSizeDecides) {
  Record record = worked_example();
  record.asked.dataset_bytes = record.asked.dataset_files = 0;
  record.asked.demand.mean_file = 20'100;
  EXPECT_THAT(
      sentences_of(verdict_of(record)).front(),
      HasSubstr("'smallfiles' was not measured, the scenario that reads as this job does (whole files of "
                "20.1 kB on average)"));
}

TEST(Verdict, WithoutADemandItGivesRatesAndABreakEvenButNoAdvice) {
  Record record = worked_example();
  record.asked.demand = {};
  const Verdict verdict = verdict_of(record);
  EXPECT_EQ(verdict.decision.advice, Advice::NotDecided);
  const auto sentences = sentences_of(verdict);
  EXPECT_THAT(sentences.front(), HasSubstr("Not decided: the job's read rate is not known: measure it with "
                                           "`spark-stage bench demand -- COMMAND`"));
  EXPECT_THAT(sentences,
              Contains("Staging from nfs pays from epoch 2 (break-even after 1.20 epochs, 95 %: 1.20 to "
                       "1.20), if the job reads as fast as it can."));
  EXPECT_THAT(sentences,
              Contains(HasSubstr("A job that consumes less than 2.80 GB/s gains nothing from staging.")));
}

TEST(Verdict, NodesShareTheTargetsRateAndTheReportStatesTheAssumption) {
  Record record = worked_example();
  record.asked.nodes = 4;
  const Verdict verdict = verdict_of(record);
  EXPECT_DOUBLE_EQ(verdict.sources[0].read.typical.value, 0.7e9);
  EXPECT_DOUBLE_EQ(verdict.local_read->typical.value, 6.5e9);
  EXPECT_THAT(
      sentences_of(verdict),
      Contains(HasSubstr("Measured by 'shards', a target's rates divided among 4 nodes: nvme-tcp reads "
                         "700 MB/s")));
  EXPECT_THAT(sentences_of(verdict).back(), HasSubstr("Assumed: 4 nodes that read at once"));
}

TEST(Verdict, PathsWithOtherFileSizesAreLeftOut) {
  Record record = worked_example();
  record.asked.dataset_files = 10'000'000;
  record.scenarios.push_back({"smallfiles", "small files", "", false, true, Cache::Cold});
  for (Cell& cell : record.cells) {
    if (cell.scenario == "shards") cell.scenario = "smallfiles";
  }
  for (PathRecord& path : record.paths) {
    path.small_files = 100;
    path.small_bytes = path.name == "nfs" ? 100'000'000 : 12'000'000;
  }
  const Verdict verdict = verdict_of(record);
  ASSERT_EQ(verdict.sources.size(), 1u);
  EXPECT_THAT(sentences_of(verdict), Contains(HasSubstr("nfs is left out: its files of 1.00 MB on average")));
}

TEST(Verdict, ReadsThatFitTheTargetsMemoryAreNoted) {
  Record record = worked_example();
  record.asked.target_memory = 32'000'000'000;
  EXPECT_THAT(
      sentences_of(verdict_of(record)),
      Contains(HasSubstr("the 4.00 GB that were read from nfs fit into its target's memory (32.0 GB)")));
  record.asked.target_memory = 1'000'000'000;
  EXPECT_THAT(sentences_of(verdict_of(record)), Not(Contains(HasSubstr("target's memory"))));
}

TEST(Verdict, SpaceThatEvictionCouldFreeCounts) {
  Record record = worked_example();
  record.paths[1].free = 1'000'000'000'000;
  record.asked.cache_room = 2'000'000'000'000;
  EXPECT_EQ(verdict_of(record).decision.advice, Advice::StageFirst) << "others would be evicted";
  record.asked.cache_room = 500'000'000'000;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("not enough space"));
  record.asked.is_staged = true;
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("(it is already)"));
}

TEST(Verdict, ACopyThatExistsCostsNothingAndNeedsNoMeasurementOfACopy) {
  Record record = worked_example();
  record.asked.is_staged = true;
  std::erase_if(record.cells, [](const Cell& cell) { return cell.scenario == "stagecopy"; });
  const Verdict verdict = verdict_of(record);
  const auto sentences = sentences_of(verdict);
  EXPECT_EQ(sentences.front(),
            "Stage first: 30 epochs of 1.20 TB take 1 h 32 min staged (it is already), 2 h 02 min less than "
            "read from nvme-tcp directly.");
  EXPECT_THAT(sentences,
              Contains("The staged copy is faster than reading from nfs from the first epoch on."));
  EXPECT_THAT(sentences, Not(Contains(HasSubstr("break-even"))));
  EXPECT_THAT(sentences, Not(Contains(HasSubstr("left out"))));
  const json::object shown = to_json(verdict);
  const json::object& source = get_array(shown, "sources")->front().as_object();
  EXPECT_EQ(get_double(source, "break_even_epochs"), 0);
  EXPECT_EQ(get_double(source, "pays_from_epoch"), 1);
  record.asked.demand.bytes_per_second = 1e9;
  EXPECT_THAT(
      sentences_of(verdict_of(record)),
      Contains("The staged copy is no faster than reading from nvme-tcp: an epoch from the local drive "
               "takes no less."));
}

TEST(Verdict, ARunWithoutALocalPathReportsThatItIsMissing) {
  Record record = worked_example();
  record.paths.erase(record.paths.begin() + 1);
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("no local path was measured"));
  EXPECT_THAT(sentences_of(verdict_of({})).front(), HasSubstr("Not decided: 'stream' was not measured"));
}

// Read-only, as required for an exchange between hosts of a fleet.
Record example_for_nodes(unsigned nodes, unsigned fleet_hosts) {
  Record record = worked_example();
  record.paths[0].read_only_reason = "mounted read-only";
  record.paths[0].storage.nic.bytes_per_second = 0;
  record.asked.nodes = nodes;
  record.asked.fleet_hosts = fleet_hosts;
  return record;
}

const Source& source_named(const Verdict& verdict, const std::string& name) {
  return *std::find_if(verdict.sources.begin(), verdict.sources.end(),
                       [&](const Source& source) { return source.name == name; });
}

TEST(Verdict, NodesWithoutAFleetShareTheTargetForReadingAndForStaging) {
  const Verdict verdict = verdict_of(example_for_nodes(4, 0));
  EXPECT_NEAR(source_named(verdict, "nvme-tcp").read.typical.value, 2.8e9 / 4, 1);
  EXPECT_NEAR(source_named(verdict, "nvme-tcp").copy->typical.value, 2.8e9 / 4, 1);
}

TEST(Verdict, AFleetStagesEachByteOnceAndItsRateIsMarkedAsCalculated) {
  const Verdict verdict = verdict_of(example_for_nodes(4, 4));
  EXPECT_NEAR(source_named(verdict, "nvme-tcp").read.typical.value, 2.8e9 / 4, 1);
  EXPECT_NEAR(source_named(verdict, "nvme-tcp").copy->typical.value, 2.8e9, 1);
  EXPECT_THAT(sentences_of(verdict),
              Contains(HasSubstr("staging from nvme-tcp at 2.80 GB/s is calculated, not measured: 4 hosts")));
}

TEST(Verdict, EachFleetReadsOnceButAWritableVolumeIsReadByEveryNode) {
  Record record = example_for_nodes(8, 2);
  EXPECT_NEAR(source_named(verdict_of(record), "nvme-tcp").copy->typical.value, 2.8e9 / 4, 1);
  record.paths[0].read_only_reason.clear();
  EXPECT_NEAR(source_named(verdict_of(record), "nvme-tcp").copy->typical.value, 2.8e9 / 8, 1);
}

TEST(Verdict, AFleetIsLimitedByTheLinkAndTheDrivesWriteRate) {
  Record record = example_for_nodes(4, 4);
  record.paths[0].storage.nic.bytes_per_second = 1.25e9;
  EXPECT_NEAR(source_named(verdict_of(record), "nvme-tcp").copy->typical.value, 1.25e9, 1);
  for (unsigned round = 1; round <= 3; ++round)
    record.cells.push_back(valid_cell("local", "checkpoint", round, 2'000'000'000, 2'000, {}));
  EXPECT_NEAR(source_named(verdict_of(record), "nvme-tcp").copy->typical.value, 1e9, 1);
}

TEST(Verdict, SimultaneousHostsNeedNoAssumptionUntilMoreNodesAreGiven) {
  Record record = example_for_nodes(0, 0);
  record.hosts = {"spark-1", "spark-2"};
  const Verdict measured = verdict_of(record);
  EXPECT_NEAR(source_named(measured, "nvme-tcp").read.typical.value, 2.8e9, 1);
  EXPECT_THAT(sentences_of(measured), Contains(HasSubstr("Measured on 2 hosts at once (spark-1, spark-2)")));
  EXPECT_THAT(sentences_of(measured), Not(Contains(HasSubstr("--nodes"))));
  record.asked.nodes = 8;
  const Verdict assumed = verdict_of(record);
  EXPECT_NEAR(source_named(assumed, "nvme-tcp").read.typical.value, 2.8e9 / 4, 1);
  EXPECT_THAT(sentences_of(assumed), Contains(HasSubstr("the rate that the target gave these 2 (--nodes)")));
}

}  // namespace
}  // namespace spark::bench
