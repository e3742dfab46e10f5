// Worked examples: a dataset of 1.2 TB, NFS 1.1, NVMe/TCP 2.8 and the local drive 6.5 GB/s, copied at the
// rate at which the network reads. The expected figures were calculated manually.
#include "bench/verdict/decision.hpp"

#include <gtest/gtest.h>

#include "bench/record/demand.hpp"

namespace spark::bench {
namespace {

constexpr double kUnet3d = 3.18e9;         // one H100
constexpr double kResnet50 = 8 * 0.205e9;  // eight

Rate exactly(double rate) {
  return rate_of_rounds({{1, rate}, {2, rate}, {3, rate}, {4, rate}, {5, rate}}).value();
}

// Rounds in steps of `part`, relative to `rate`, the lowest in round `first`.
Rate about(double rate, double part, unsigned first) {
  ByRound rounds;
  for (unsigned i = 0; i < 5; ++i) rounds[1 + (first + i) % 5] = rate * (1 + part * (i - 2.0));
  return rate_of_rounds(rounds).value();
}

const Rate kLocal = exactly(6.5e9);

std::vector<Source> two_sources() {
  return {{"nfs", exactly(1.1e9), exactly(1.1e9)}, {"nvme-tcp", exactly(2.8e9), exactly(2.8e9)}};
}

Question thirty_epochs() {
  return {1'200'000'000'000, 30, 0, 2'000'000'000'000};
}

TEST(BreakEven, IsCalculatedForAJobThatReadsAsFastAsItCan) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, 0).value(), 1.20, 0.005);
  EXPECT_NEAR(break_even(2.8e9, 2.8e9, 6.5e9, 0).value(), 1.76, 0.005);
  EXPECT_EQ(pays_from(1.20), 2);
  EXPECT_EQ(pays_from(1.76), 2);
  EXPECT_EQ(pays_from(2.0), 3) << "at 2.0 both took the same: the third epoch wins";
}

TEST(BreakEven, IsLaterForAJobThatTheNetworkAlmostFeeds) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, kUnet3d).value(), 1.53, 0.005);
  EXPECT_NEAR(break_even(2.8e9, 2.8e9, 6.5e9, kUnet3d).value(), 8.37, 0.005);
}

TEST(BreakEven, IsNeverReachedIfTheNetworkFeedsTheJob) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, kResnet50).value(), 3.04, 0.005);
  EXPECT_FALSE(break_even(2.8e9, 2.8e9, 6.5e9, kResnet50));
  EXPECT_FALSE(break_even(7e9, 5e9, 6.5e9, 0)) << "a network faster than the drive";
}

TEST(BreakEven, RatesThatDriftTogetherHaveANarrowInterval) {
  // If the network is twice as fast, an epoch saves half as much and the copy costs half as much.
  const Source together{"nfs", about(1.1e9, 0.1, 0), about(1.1e9, 0.1, 0)};
  const BreakEven even = break_even_of(together, kLocal, 0);
  ASSERT_TRUE(even.has_range);
  EXPECT_NEAR(even.epochs.value(), 1.20, 0.005);
  EXPECT_GT(even.best.value(), 1.15);
  EXPECT_LT(even.worst.value(), 1.26);
  const Source apart{"nfs", about(1.1e9, 0.1, 0), about(1.1e9, 0.1, 2)};
  const BreakEven wide = break_even_of(apart, kLocal, 0);
  EXPECT_GT(wide.worst.value() - wide.best.value(), 3 * (even.worst.value() - even.best.value()));
}

TEST(BreakEven, ItsIntervalIsUnboundedIfSomeRoundsFeedTheJob) {
  const Source fed{"nvme-tcp", about(2.9e9, 0.1, 0), about(2.8e9, 0.1, 0)};
  EXPECT_TRUE(break_even_of(fed, kLocal, kUnet3d).best);
  EXPECT_FALSE(break_even_of(fed, kLocal, kUnet3d).worst);
}

TEST(BreakEven, OfACopyThatExistsIsAtOnceOrNever) {
  const Source nfs = {"nfs", exactly(1.1e9), std::nullopt};
  const BreakEven even = break_even_of_copy(nfs, kLocal, 0);
  EXPECT_TRUE(even.has_range);
  EXPECT_EQ(even.epochs, 0);
  EXPECT_EQ(even.worst, 0);
  EXPECT_FALSE(break_even_of_copy(nfs, kLocal, 1e9).epochs) << "the network feeds the job";
  const Source alike = {"nfs", about(6.3e9, 0.1, 0), std::nullopt};
  EXPECT_EQ(break_even_of_copy(alike, about(6.5e9, 0.1, 2), 0).epochs, 0);
  EXPECT_FALSE(break_even_of_copy(alike, about(6.5e9, 0.1, 2), 0).worst);
}

TEST(BreakEven, HasNoIntervalWithoutEnoughCommonRounds) {
  const Source source{"nfs", rate_of_rounds({{1, 1e9}, {2, 1e9}, {3, 1e9}}).value(),
                      rate_of_rounds({{3, 1e9}, {4, 1e9}, {5, 1e9}})};
  EXPECT_TRUE(break_even_of(source, kLocal, 0).epochs);
  EXPECT_FALSE(break_even_of(source, kLocal, 0).has_range);
  EXPECT_EQ(decide(thirty_epochs(), {source}, kLocal).advice, Advice::NotDecided)
      << "the copy has three rounds, reading has three, of which one is common";
}

TEST(Decision, ThirtyEpochsAtFullSpeedAreStagedFirst) {
  const Decision decision = decide(thirty_epochs(), two_sources(), kLocal);
  EXPECT_EQ(decision.advice, Advice::StageFirst);
  ASSERT_EQ(decision.ways.size(), 4u);
  EXPECT_EQ(decision.ways[0].source, "nvme-tcp");
  EXPECT_TRUE(decision.ways[0].staged);
  EXPECT_NEAR(decision.ways[0].seconds.value, 5967, 1);   // 428.6 + 30 x 184.6
  EXPECT_NEAR(decision.ways[1].seconds.value, 6629, 1);   // from NFS: 1 h 50 min
  EXPECT_NEAR(decision.ways[2].seconds.value, 12857, 1);  // from NVMe/TCP directly: 3 h 34 min
  EXPECT_NEAR(decision.ways[3].seconds.value, 32727, 1);
  EXPECT_NEAR(decision.ways[3].seconds.value - decision.ways[1].seconds.value, 7 * 3600 + 14 * 60, 61);
}

TEST(Decision, AJobThatTheNetworkFeedsIsTrainedDirectly) {
  Question question = thirty_epochs();
  question.demand = kResnet50;
  const Decision decision = decide(question, two_sources(), kLocal);
  EXPECT_EQ(decision.advice, Advice::NoClearDifference)
      << "30 epochs at the job's own speed, and 7 min of copying are 2 % of them";
  question.epochs = 3;
  EXPECT_EQ(decide(question, two_sources(), kLocal).advice, Advice::TrainDirectly);
}

TEST(Decision, DisagreeingRoundsMeanNoClearDifference) {
  const std::vector<Source> sources = {{"nvme-tcp", about(2.8e9, 0.2, 0), about(2.8e9, 0.2, 2)}};
  Question question = thirty_epochs();
  question.epochs = 2;
  EXPECT_EQ(decide(question, sources, about(6.5e9, 0.2, 1)).advice, Advice::NoClearDifference);
  question.epochs = 30;
  EXPECT_EQ(decide(question, sources, about(6.5e9, 0.1, 1)).advice, Advice::StageFirst);
}

TEST(Decision, AnExistingCopyCostsNothingAndNeedsNoSpace) {
  Question question = thirty_epochs();
  question.epochs = 1;
  EXPECT_EQ(decide(question, two_sources(), kLocal).advice, Advice::TrainDirectly);
  question.is_staged = true;
  question.local_room = 0;
  const Decision decision = decide(question, two_sources(), kLocal);
  EXPECT_EQ(decision.advice, Advice::StageFirst);
  EXPECT_EQ(decision.staged->copying, 0);
  EXPECT_EQ(decision.ways.size(), 3U) << "one copy, wherever it came from";
  EXPECT_EQ(decision.break_even[0].epochs, 0);
  std::vector<Source> uncopied = two_sources();
  for (Source& source : uncopied) source.copy.reset();
  EXPECT_EQ(decide(question, uncopied, kLocal).advice, Advice::StageFirst);
  EXPECT_FALSE(decision.meanwhile);
}

TEST(Decision, StagingDuringTheFirstEpochTakesAsLongAsTheSlowerOfTheCopyAndTheJob) {
  Question question = thirty_epochs();
  question.epochs = 3;
  const std::vector<Source> nfs = {two_sources()[0]};  // a copy of 1,091 s
  question.demand = 0.5e9;                             // an epoch of 2,400 s: the copy costs nothing
  EXPECT_NEAR(decide(question, nfs, kLocal).meanwhile.value().seconds.value, 3 * 2400, 1);
  question.demand = 0;  // an epoch of 185 s: the first one waits for the copy
  const Decision decision = decide(question, nfs, kLocal);
  EXPECT_NEAR(decision.meanwhile.value().seconds.value, 1.2e12 / 1.1e9 + 2 * 1.2e12 / 6.5e9, 1);
  EXPECT_LT(decision.meanwhile->seconds.value, decision.staged->seconds.value);
  question.epochs = 0.5;
  EXPECT_FALSE(decide(question, nfs, kLocal).meanwhile) << "the job ends before the copy does";
}

TEST(Decision, StagingDuringTheFirstEpochHasTheIntervalOfItsRounds) {
  Question question = thirty_epochs();
  question.epochs = 1;
  const std::vector<Source> nfs = {{"nfs", exactly(1.1e9), about(1.1e9, 0.1, 0)}};
  const Decision decision = decide(question, nfs, kLocal);
  ASSERT_TRUE(decision.meanwhile);
  EXPECT_EQ(decision.meanwhile->rounds.size(), 5U);
  EXPECT_LT(decision.meanwhile->seconds.range.low, decision.meanwhile->seconds.value);
  EXPECT_GT(decision.meanwhile->seconds.range.high, decision.meanwhile->seconds.value);
}

TEST(Decision, WithoutEnoughSpaceNothingIsStaged) {
  Question question = thirty_epochs();
  question.local_room = 1'259'000'000'000;
  const Decision decision = decide(question, two_sources(), kLocal);
  EXPECT_FALSE(decision.has_room);
  EXPECT_FALSE(decision.staged);
  EXPECT_EQ(decision.advice, Advice::TrainDirectly);
  question.local_room = 1'260'000'000'000;
  EXPECT_TRUE(decide(question, two_sources(), kLocal).has_room) << "5 % more than the dataset is enough";
}

TEST(Decision, WithoutACopyRateOrADriveRateItIsNotDecided) {
  std::vector<Source> sources = two_sources();
  for (Source& source : sources) source.copy.reset();
  EXPECT_EQ(decide(thirty_epochs(), sources, kLocal).advice, Advice::NotDecided);
  EXPECT_EQ(decide(thirty_epochs(), two_sources(), std::nullopt).advice, Advice::NotDecided);
  EXPECT_EQ(decide(thirty_epochs(), {}, kLocal).advice, Advice::NotDecided);
}

TEST(Decision, TheFedShareOfTheDemandIsAtMostOne) {
  EXPECT_NEAR(fed_share(1.1e9, kUnet3d), 0.346, 0.001);
  EXPECT_EQ(fed_share(6.5e9, kUnet3d), 1);
  EXPECT_EQ(fed_share(1, 0), 1);
}

TEST(Demand, IsLookedUpByJobName) {
  EXPECT_DOUBLE_EQ(demand_like("unet3d")->bytes_per_second, 3.18e9);
  EXPECT_DOUBLE_EQ(demand_like("8xresnet50")->bytes_per_second, 1.64e9);
  EXPECT_EQ(demand_like("8xresnet50")->words, "resnet50 on 8 H100, what-if of MLPerf Storage");
  EXPECT_EQ(demand_like("2xretinanet")->words, "retinanet on 2 B200");
  EXPECT_DOUBLE_EQ(demand_like("2xretinanet")->bytes_per_second, 0.326e9);
  EXPECT_EQ(demand_like("retinanet")->mean_file, 322'957u) << "small files";
  EXPECT_EQ(checkpoint_like("llama3-70b"), 912'000'000'000u);
  EXPECT_EQ(checkpoint_like("unet3d"), 0u);
  EXPECT_DOUBLE_EQ(demand_like("cosmoflow-a100")->bytes_per_second, 0.51e9);
}

TEST(Demand, AnUnknownJobSuggestsTheNearestName) {
  EXPECT_NE(demand_like("resnet5").error().hint.find("'resnet50'"), std::string::npos);
  EXPECT_NE(demand_like("zzzzzzzzzz").error().hint.find("--demand"), std::string::npos);
  EXPECT_FALSE(demand_like("0xunet3d"));
  EXPECT_FALSE(demand_like(""));
}

}  // namespace
}  // namespace spark::bench
