// What rounds tell: the typical value, how far the rounds lie apart, and whether two paths differ. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace spark::bench {

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

// A typical value and where it lies with 95 % confidence. low <= value <= high.
struct Estimate {
  double value = 0;
  Interval range;
};

// 0 for none.
double median(std::vector<double> values);

// Standard deviation by mean (coefficient of variation); 0 for fewer than two values.
double spread(const std::vector<double>& values);

// Rounds are repeated until the spread is below this.
inline constexpr double kSteadySpread = 0.05;

// Who decides between two paths need not care for less, whatever is certain.
inline constexpr double kNegligible = 0.03;

// The median, with Student's 95 % interval of the logarithms. No value for fewer than three rounds, or for a
// rate that is not positive.
std::optional<Estimate> estimate_of(const std::vector<double>& rates);

// Student's 95 % interval of the mean, of values of any sign. No value for fewer than three.
std::optional<Interval> interval_of_mean(const std::vector<double>& values);

enum class Difference { TooFewRounds, NoClearDifference, Higher, Lower };

// How `b` compares with `a`, of which every pair comes from one round: what drifts between rounds falls on
// both and cancels.
struct PairedComparison {
  Difference difference = Difference::TooFewRounds;
  double ratio = 0;  // typical b/a
  Interval range;    // 95 %, by Student's t of the logarithms of the ratios
  std::size_t rounds = 0;
};

// A difference is clear when the interval leaves 1 out and the ratio is at least 3 % away from it. Fewer than
// three pairs, or a value that is not positive: TooFewRounds.
PairedComparison compare_pairs(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace spark::bench
