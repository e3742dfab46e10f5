// The verdict on checkpoints: how long one takes to each path.
#include <gmock/gmock.h>

#include "bench/verdict/verdict.hpp"
#include "tests/unit/bench/verdict/worked_example.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Checkpoints, AreTimedForStageOut) {
  Record record = worked_example();
  record.asked.demand = {};
  record.asked.checkpoint = checkpoint_like("llama3-8b");
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("--scenario checkpoint"));
  for (unsigned round = 1; round <= 3; ++round) {
    record.cells.push_back(valid_cell("local", "checkpoint", round, 10'000'000'000, 1, {}));
    record.cells.push_back(valid_cell("nfs", "checkpoint", round, 1'000'000'000, 1, {}));
  }
  EXPECT_EQ(
      sentences_of(verdict_of(record)).front(),
      "A checkpoint of 105 GB, written by this host alone, takes 21.0 s to local, 3 min 30 s to nfs: with "
      "stage-out the job waits 3 min 09 s less than for nfs.");
  record.scenarios = {{"checkpoint", "sequential write", "", true, false, Cache::Direct}};
  EXPECT_THAT(sentences_of(verdict_of(record)).front(), HasSubstr("3 min 09 s less than for nfs"))
      << "nothing else was measured";
}

Record checkpoints_of(const std::vector<Bytes>& local, const std::vector<Bytes>& nfs) {
  Record record = worked_example();
  record.asked.demand = {};
  record.asked.checkpoint = checkpoint_like("llama3-8b");
  for (unsigned round = 1; round <= local.size(); ++round)
    record.cells.push_back(valid_cell("local", "checkpoint", round, local[round - 1], 1, {}));
  for (unsigned round = 1; round <= nfs.size(); ++round)
    record.cells.push_back(valid_cell("nfs", "checkpoint", round, nfs[round - 1], 1, {}));
  return record;
}

TEST(Checkpoints, ACheckpointsTimeNeedsThreeRoundsAndAGainAClearDifference) {
  const Bytes gigabyte = 1'000'000'000;
  const Record two = checkpoints_of({10 * gigabyte, 10 * gigabyte}, {gigabyte, gigabyte});
  EXPECT_EQ(sentences_of(verdict_of(two)).front(),
            "Not decided: no path has three valid rounds of 'checkpoint': measure again with --scenario "
            "checkpoint.");
  const Record alike =
      checkpoints_of({2 * gigabyte, 3 * gigabyte, 2 * gigabyte}, {2 * gigabyte, 2 * gigabyte, 3 * gigabyte});
  EXPECT_THAT(sentences_of(verdict_of(alike)).front(),
              HasSubstr("with stage-out the job waits not clearly less than for nfs."));
  const Record opposite = checkpoints_of(std::vector<Bytes>(3, 10 * gigabyte),
                                         {5 * gigabyte, 5 * gigabyte, 5 * gigabyte, 20 * gigabyte,
                                          20 * gigabyte, 20 * gigabyte, 20 * gigabyte, 20 * gigabyte});
  EXPECT_THAT(sentences_of(verdict_of(opposite)).front(),
              HasSubstr("with stage-out the job waits not clearly less than for nfs."))
      << "the later rounds of nfs alone are faster";
}

TEST(Checkpoints, ACheckpointsTimeIsNotThatOfALimitNorOfOneHostOfSeveral) {
  const std::vector<Bytes> rates(3, 10'000'000'000);
  Record record = checkpoints_of(rates, rates);
  record.hosts = {"spark-1", "spark-2"};
  EXPECT_THAT(sentences_of(verdict_of(record)).front(),
              HasSubstr("written by one of 2 hosts that all write"));
  const json::object shown = to_json(verdict_of(record));
  EXPECT_EQ(get_array(*get_object(shown, "checkpoint"), "times")->size(), 2U);
  record.paths[2].at_once = {{"checkpoint", 0.5}};
  EXPECT_THAT(sentences_of(verdict_of(record)), Contains(HasSubstr("the checkpoint to nfs is left out")));
  EXPECT_TRUE(verdict_of(record).checkpoints.lacks.empty());
  Record apart = record;
  std::erase_if(apart.cells, [](const Cell& cell) { return cell.path == "local"; });
  EXPECT_THAT(sentences_of(verdict_of(apart)).front(),
              testing::AllOf(HasSubstr("Not decided: "), HasSubstr("at once for 50 %")))
      << "it has three valid rounds";
  record.rate_limit = 500'000'000;
  EXPECT_EQ(sentences_of(verdict_of(record)).front(),
            "Not decided: the run was held to 500 MB/s (--rate-limit).");
}

}  // namespace
}  // namespace spark::bench
