// Worked examples: a dataset of 1.2 TB, NFS 1.1, NVMe/TCP 2.8 and the local drive 6.5 GB/s, copied as fast as
// the network reads. The expected figures were worked out by hand.
#include "bench/verdict/decision.hpp"

#include <gtest/gtest.h>

#include "bench/record/demand.hpp"

namespace spark::bench {
namespace {

constexpr double kUnet3d = 3.18e9;         // one H100
constexpr double kResnet50 = 8 * 0.205e9;  // eight

Estimate exactly(double rate) {
  return {rate, {rate, rate}};
}

Estimate about(double rate, double part) {
  return {rate, {rate * (1 - part), rate * (1 + part)}};
}

const Estimate kLocal = exactly(6.5e9);

std::vector<Source> two_sources() {
  return {{"nfs", exactly(1.1e9), exactly(1.1e9)}, {"nvme-tcp", exactly(2.8e9), exactly(2.8e9)}};
}

Question thirty_epochs() {
  return {1'200'000'000'000, 30, 0, 2'000'000'000'000};
}

TEST(BreakEven, OfAJobThatTakesWhatItGets) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, 0).value(), 1.20, 0.005);
  EXPECT_NEAR(break_even(2.8e9, 2.8e9, 6.5e9, 0).value(), 1.76, 0.005);
  EXPECT_EQ(pays_from(1.20), 2);
  EXPECT_EQ(pays_from(1.76), 2);
  EXPECT_EQ(pays_from(2.0), 3) << "at 2.0 both took the same: the third epoch wins";
}

TEST(BreakEven, OfAJobThatOneNetworkAlmostFeeds) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, kUnet3d).value(), 1.53, 0.005);
  EXPECT_NEAR(break_even(2.8e9, 2.8e9, 6.5e9, kUnet3d).value(), 8.37, 0.005);
}

TEST(BreakEven, IsNeverWhereTheNetworkFeedsTheJob) {
  EXPECT_NEAR(break_even(1.1e9, 1.1e9, 6.5e9, kResnet50).value(), 3.04, 0.005);
  EXPECT_FALSE(break_even(2.8e9, 2.8e9, 6.5e9, kResnet50));
  EXPECT_FALSE(break_even(7e9, 5e9, 6.5e9, 0)) << "a network faster than the drive";
}

TEST(BreakEven, ItsIntervalIsThatOfTheWorstAndTheBestCase) {
  const Source source{"nvme-tcp", about(2.8e9, 0.1), about(2.8e9, 0.1)};
  const BreakEven even = break_even_of(source, about(6.5e9, 0.1), kUnet3d);
  EXPECT_NEAR(even.epochs.value(), 8.37, 0.005);
  // 2.52 GB/s read, 3.08 copied: 1/3.08 / (1/2.52 - 1/3.18).
  EXPECT_NEAR(even.best.value(), 3.94, 0.01);
  // 3.08 GB/s read, 2.52 copied: 1/2.52 / (1/3.08 - 1/3.18).
  EXPECT_NEAR(even.worst.value(), 38.9, 0.1);
  const Source fed{"nvme-tcp", about(2.8e9, 0.2), about(2.8e9, 0.1)};
  EXPECT_TRUE(break_even_of(fed, kLocal, kUnet3d).best);
  EXPECT_FALSE(break_even_of(fed, kLocal, kUnet3d).worst) << "3.36 GB/s would feed the job: never";
}

TEST(Decision, ThirtyEpochsAsFastAsTheyGoAreStagedFirst) {
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

TEST(Decision, IntervalsThatOverlapAreNoClearDifference) {
  const std::vector<Source> sources = {{"nvme-tcp", about(2.8e9, 0.3), about(2.8e9, 0.3)}};
  Question question = thirty_epochs();
  question.epochs = 2;
  EXPECT_EQ(decide(question, sources, about(6.5e9, 0.3)).advice, Advice::NoClearDifference);
  question.epochs = 30;
  EXPECT_EQ(decide(question, sources, about(6.5e9, 0.2)).advice, Advice::StageFirst);
}

TEST(Decision, WithoutRoomNothingIsStaged) {
  Question question = thirty_epochs();
  question.local_free = 1'259'000'000'000;
  const Decision decision = decide(question, two_sources(), kLocal);
  EXPECT_FALSE(decision.has_room);
  EXPECT_FALSE(decision.staged);
  EXPECT_EQ(decision.advice, Advice::TrainDirectly);
  question.local_free = 1'260'000'000'000;
  EXPECT_TRUE(decide(question, two_sources(), kLocal).has_room) << "5 % more than the dataset is enough";
}

TEST(Decision, WithoutARateOfTheCopyOrTheDriveThereIsNone) {
  std::vector<Source> sources = two_sources();
  for (Source& source : sources) source.copy.reset();
  EXPECT_EQ(decide(thirty_epochs(), sources, kLocal).advice, Advice::NotDecided);
  EXPECT_EQ(decide(thirty_epochs(), two_sources(), std::nullopt).advice, Advice::NotDecided);
  EXPECT_EQ(decide(thirty_epochs(), {}, kLocal).advice, Advice::NotDecided);
}

TEST(Decision, TheDemandIsFedInPart) {
  EXPECT_NEAR(fed_share(1.1e9, kUnet3d), 0.346, 0.001);
  EXPECT_EQ(fed_share(6.5e9, kUnet3d), 1);
  EXPECT_EQ(fed_share(1, 0), 1);
}

TEST(Demand, IsThatOfAKnownJob) {
  EXPECT_DOUBLE_EQ(demand_like("unet3d")->bytes_per_second, 3.18e9);
  EXPECT_DOUBLE_EQ(demand_like("8xresnet50")->bytes_per_second, 1.64e9);
  EXPECT_EQ(demand_like("8xresnet50")->words, "resnet50 on 8 H100");
  EXPECT_DOUBLE_EQ(demand_like("cosmoflow-a100")->bytes_per_second, 0.51e9);
}

TEST(Demand, OfAnUnknownJobNamesTheNearest) {
  EXPECT_NE(demand_like("resnet5").error().hint.find("'resnet50'"), std::string::npos);
  EXPECT_NE(demand_like("zzzzzzzzzz").error().hint.find("--demand"), std::string::npos);
  EXPECT_FALSE(demand_like("0xunet3d"));
  EXPECT_FALSE(demand_like(""));
}

}  // namespace
}  // namespace spark::bench
