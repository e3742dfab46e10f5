#include "bench/record/histogram.hpp"

#include <gtest/gtest.h>

namespace spark::bench {
namespace {

TEST(Histogram, PercentilesAreOfTheMergedBinsAndNotTheMeanOfPercentiles) {
  const Bins fast = {{100, 9900}, {200, 100}};
  const Bins slow = {{100, 800}, {5000, 200}};
  EXPECT_EQ(percentile(fast, 99), 100u);
  EXPECT_EQ(percentile(slow, 99), 5000u);
  Bins merged = fast;
  merge_into(merged, slow);
  EXPECT_EQ(sample_count(merged), 11'000u);
  EXPECT_EQ(percentile(merged, 97), 100u);
  EXPECT_EQ(percentile(merged, 98), 200u);
  EXPECT_EQ(percentile(merged, 99), 5000u);
}

TEST(Histogram, TheRankIsExactAtTheEdgeOfABin) {
  const Bins bins = {{1, 990}, {2, 10}};
  EXPECT_EQ(percentile(bins, 99), 1u);
  EXPECT_EQ(percentile({{1, 989}, {2, 11}}, 99), 2u);
  EXPECT_EQ(percentile({{1, 50}, {2, 50}}, 50), 1u);
}

TEST(Histogram, TooFewSamplesGiveNoPercentile) {
  EXPECT_EQ(percentile({}, 50), std::nullopt);
  EXPECT_EQ(percentile({{7, 19}}, 50), std::nullopt);
  EXPECT_EQ(percentile({{7, 20}}, 50), 7u);
  EXPECT_EQ(percentile({{7, 999}}, 99), std::nullopt);
  EXPECT_EQ(percentile({{7, 1000}}, 99), 7u);
  EXPECT_EQ(percentile({{7, 9'999}}, 99.9), std::nullopt);
  EXPECT_EQ(percentile({{7, 10'000}}, 99.9), 7u);
}

}  // namespace
}  // namespace spark::bench
