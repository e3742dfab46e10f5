#include "bench/record/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace spark::bench {
namespace {

constexpr std::size_t kFewestRounds = 3;

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

// Needs at least two values.
Interval student_interval(const std::vector<double>& values) {
  const auto rounds = static_cast<double>(values.size());
  const boost::math::students_t student(rounds - 1);
  const double half = boost::math::quantile(student, 0.975) * deviation(values) / std::sqrt(rounds);
  return {mean(values) - half, mean(values) + half};
}

// Interval of the geometric mean. Needs at least two values, all positive.
Interval interval_of_logarithms(const std::vector<double>& logarithms) {
  const Interval interval = student_interval(logarithms);
  return {std::exp(interval.low), std::exp(interval.high)};
}

}  // namespace

std::vector<double> values_of(const ByRound& rounds) {
  std::vector<double> values;
  for (const auto& [round, value] : rounds) values.push_back(value);
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double spread(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double centre = mean(values);
  return centre > 0 ? deviation(values) / centre : 0;
}

std::optional<Estimate> estimate_of(const std::vector<double>& rates) {
  if (rates.size() < kFewestRounds || !all_positive(rates)) return std::nullopt;
  std::vector<double> logarithms;
  for (const double rate : rates) logarithms.push_back(std::log(rate));
  Estimate estimate{median(rates), interval_of_logarithms(logarithms)};
  // The interval belongs to the geometric mean, which a single outlier moves away from the median.
  estimate.range.low = std::min(estimate.range.low, estimate.value);
  estimate.range.high = std::max(estimate.range.high, estimate.value);
  return estimate;
}

std::optional<Interval> interval_of_mean(const std::vector<double>& values) {
  if (values.size() < kFewestRounds) return std::nullopt;
  return student_interval(values);
}

PairedComparison compare_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  PairedComparison comparison;
  comparison.rounds = std::min(a.size(), b.size());
  if (comparison.rounds < kFewestRounds || !all_positive(a) || !all_positive(b)) return comparison;
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < comparison.rounds; ++i) logarithms.push_back(std::log(b[i] / a[i]));
  comparison.ratio = std::exp(mean(logarithms));
  comparison.range = interval_of_logarithms(logarithms);
  const bool holds_one = comparison.range.low <= 1 && comparison.range.high >= 1;
  if (holds_one || std::abs(comparison.ratio - 1) < kNegligible) {
    comparison.difference = Difference::NoClearDifference;
  } else {
    comparison.difference = comparison.ratio > 1 ? Difference::Higher : Difference::Lower;
  }
  return comparison;
}

PairedComparison compare_rounds(const ByRound& a, const ByRound& b) {
  std::vector<double> of_a, of_b;
  for (const auto& [round, value] : a) {
    const auto other = b.find(round);
    if (other == b.end()) continue;
    of_a.push_back(value);
    of_b.push_back(other->second);
  }
  return compare_pairs(of_a, of_b);
}

}  // namespace spark::bench
