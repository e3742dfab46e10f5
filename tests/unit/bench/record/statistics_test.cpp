#include "bench/record/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

TEST(Statistics, TheMedianOfAnEvenNumberIsTheMiddleOfTheTwo) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, TheSpreadIsTheDeviationDividedByTheMean) {
  EXPECT_EQ(spread({}), 0);
  EXPECT_EQ(spread({7}), 0);
  EXPECT_NEAR(spread({95, 100, 105}), 0.05, 1e-12);
}

// Calculated manually: logarithms -d, 0, d have deviation d; t for two degrees of freedom is 4.302653.
TEST(Statistics, TheIntervalAppliesStudentsTToTheLogarithms) {
  const double d = std::log(1.1);
  const auto estimate = estimate_of({1 / 1.1, 1, 1.1});
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->value, 1);
  EXPECT_NEAR(estimate->range.high, std::exp(4.302653 * d / std::sqrt(3.0)), 1e-6);
  EXPECT_NEAR(estimate->range.low * estimate->range.high, 1, 1e-9);
}

TEST(Statistics, TheIntervalContainsTheMedianDespiteAnOutlier) {
  const auto estimate = estimate_of({100, 100, 100, 100, 1e-9});
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->value, 100);
  EXPECT_GE(estimate->range.high, 100);
  EXPECT_LE(estimate->range.low, 100);
}

TEST(Statistics, TwoRoundsOrAZeroRateHaveNoEstimate) {
  EXPECT_FALSE(estimate_of({1, 2}));
  EXPECT_FALSE(estimate_of({0, 1, 2}));
}

TEST(Paired, DriftThatFallsOnBothPathsOfARoundCancels) {
  const PairedComparison compared = compare_pairs({100, 50, 200, 80, 120}, {110.2, 54.9, 220.4, 88.1, 131.8});
  EXPECT_EQ(compared.difference, Difference::Higher);
  EXPECT_NEAR(compared.ratio, 1.1, 0.002);
  EXPECT_LT(compared.range.high - compared.range.low, 0.01);
  EXPECT_EQ(compare_pairs({110, 55, 220}, {100, 50, 200}).difference, Difference::Lower);
}

TEST(Paired, AnIntervalContainingOneMeansNoClearDifference) {
  const PairedComparison compared = compare_pairs({100, 100, 100}, {90, 130, 101});
  EXPECT_EQ(compared.difference, Difference::NoClearDifference);
  EXPECT_LT(compared.range.low, 1);
  EXPECT_GT(compared.range.high, 1);
}

TEST(Paired, ADifferenceBelowThreePercentIsNeverClear) {
  EXPECT_EQ(compare_pairs({100, 100, 100}, {102, 102, 102}).difference, Difference::NoClearDifference);
  EXPECT_EQ(compare_pairs({100, 100, 100}, {104, 104, 104}).difference, Difference::Higher);
}

// 100 rounds of `bench a=FOLDER b=FOLDER --scenario latency`, recorded on a real drive: 20 runs of five.
TEST(Paired, TheSamePathUnderTwoNamesHasNoClearDifferenceInNineteenOfTwentyRuns) {
  const auto recorded = parse_json_object(fixture("same_path.json"));
  ASSERT_TRUE(recorded);
  const json::array& a = *get_array(*recorded, "a");
  const json::array& b = *get_array(*recorded, "b");
  ASSERT_EQ(a.size(), 100u);
  ASSERT_EQ(b.size(), 100u);
  int alike = 0;
  for (std::size_t run = 0; run < 20; ++run) {
    std::vector<double> of_a, of_b;
    for (std::size_t round = 5 * run; round < 5 * run + 5; ++round) {
      of_a.push_back(a[round].to_number<double>());
      of_b.push_back(b[round].to_number<double>());
    }
    if (compare_pairs(of_a, of_b).difference == Difference::NoClearDifference) ++alike;
  }
  EXPECT_GE(alike, 19);
}

TEST(Paired, FewerThanThreeRoundsAreNotCompared) {
  EXPECT_EQ(compare_pairs({1, 2}, {3, 4}).difference, Difference::TooFewRounds);
  EXPECT_EQ(compare_pairs({1, 0, 2}, {3, 4, 5}).difference, Difference::TooFewRounds);
}

}  // namespace
}  // namespace spark::bench
