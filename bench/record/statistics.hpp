// Statistics over rounds: the typical value, the spread, and whether two paths differ. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace spark::bench {

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

// A typical value with its 95 % interval. low <= value <= high.
struct Estimate {
  double value = 0;
  Interval range;
};

// One figure for each valid round.
using ByRound = std::map<unsigned, double>;
std::vector<double> values_of(const ByRound& rounds);

// Of at least one value, and of at least two.
double mean(const std::vector<double>& values);
double deviation(const std::vector<double>& values);

// 0 if there are no values.
double median(std::vector<double> values);

// Standard deviation divided by the mean (coefficient of variation); 0 for fewer than two values.
double spread(const std::vector<double>& values);

// Rounds are added until the spread is below this.
inline constexpr double kSteadySpread = 0.05;

// A smaller difference does not matter for a choice between two paths, even if it is certain.
inline constexpr double kNegligible = 0.03;

// The median, with Student's 95 % interval of the logarithms. No value for fewer than three rounds or if a
// rate is not positive.
std::optional<Estimate> estimate_of(const std::vector<double>& rates);

// Student's 95 % interval of the mean, for values of any sign. No value for fewer than three values.
std::optional<Interval> interval_of_mean(const std::vector<double>& values);

enum class Difference { TooFewRounds, NoClearDifference, Higher, Lower };

// Compares `b` with `a` in pairs, each from one round: drift between rounds affects both values and cancels.
struct PairedComparison {
  Difference difference = Difference::TooFewRounds;
  double ratio = 0;  // median b/a
  Interval range;    // 95 %, by Student's t of the logarithms of the ratios
  std::size_t rounds = 0;
};

// A difference is clear if the interval excludes 1 and the ratio differs from 1 by at least 3 %. TooFewRounds
// for fewer than three pairs or a value that is not positive.
PairedComparison compare_pairs(const std::vector<double>& a, const std::vector<double>& b);
// The same for the values of the rounds that both have.
PairedComparison compare_rounds(const ByRound& a, const ByRound& b);

}  // namespace spark::bench
