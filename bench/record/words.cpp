#include "bench/record/words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace spark::bench {

std::string count_text(double count) {
  const char* unit = count >= 999'500 ? "M" : count >= 9'995 ? "k" : "";
  const double value = count >= 999'500 ? count / 1e6 : count >= 9'995 ? count / 1e3 : count;
  char text[64];
  const int digits = *unit == '\0' || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f%s", digits, value, unit);
  return text;
}

std::string latency_text(std::optional<std::uint64_t> nanoseconds) {
  if (!nanoseconds) return "-";
  const auto value = static_cast<double>(*nanoseconds);
  char text[64];
  if (value < 999'500) {
    std::snprintf(text, sizeof text, "%.0f us", value / 1e3);
  } else if (value < 999.5e6) {
    std::snprintf(text, sizeof text, value < 9.995e6 ? "%.2f ms" : "%.1f ms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.2f s", value / 1e9);
  }
  return text;
}

std::string headline_text(double value, const ScenarioRecord& scenario) {
  if (!scenario.counts_ios) return format_rate(value);
  return count_text(value) + (scenario.id == "latency" ? " IOPS" : " files/s");
}

std::string range_text(double low, double high, const ScenarioRecord& scenario) {
  const std::string from = headline_text(low, scenario);
  const std::string to = headline_text(high, scenario);
  const std::string unit = from.substr(from.find(' '));
  return (to.ends_with(unit) ? from.substr(0, from.size() - unit.size()) : from) + " to " + to;
}

double as_printed(double value, const ScenarioRecord& scenario) {
  const std::string text = headline_text(value, scenario);
  const double shown = std::strtod(text.c_str(), nullptr);
  if (shown <= 0) return value;
  // The unit is the power of 1,000 that brings the shown number nearest to the value.
  return shown * std::pow(1000, std::round(std::log(value / shown) / std::log(1000.0)));
}

std::string ratio_text(const PairedComparison& comparison, double of_medians) {
  const double ratio = of_medians;
  char text[64];
  std::snprintf(text, sizeof text, "%.*fx", ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0, ratio);
  const bool is_unknown = comparison.difference == Difference::TooFewRounds;
  return (comparison.difference == Difference::NoClearDifference ? "≈" : "") + std::string(text) +
         (is_unknown ? "?" : "");
}

std::string loaded_text(const Summary& summary, const ScenarioRecord& scenario) {
  if (!is_loading(scenario.id) || summary.seconds.empty()) return "";
  return seconds_text(median(summary.seconds)) + ", ";
}

std::string free_memory_text(const Summary& summary) {
  if (!summary.memory) return "";
  const FreeMemory& memory = *summary.memory;
  return format_bytes(memory.after) + ", " +
         (memory.cached ? format_bytes(*memory.cached) + " cached" : format_bytes(memory.taken()) + " less");
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string seconds_text(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 9e9) * 1e9)));
}

std::string small_number(const std::optional<double>& number) {
  if (!number) return "-";
  char text[64];
  std::snprintf(text, sizeof text, *number < 0.0995 ? "%.3f" : *number < 9.95 ? "%.2f" : "%.0f", *number);
  return text;
}

std::string apart_words(const std::string& path, const ScenarioOverlap& overlap) {
  return "the hosts measured '" + overlap.scenario + "' of " + path + " at once for " +
         percent_text(overlap.share) + " of the time only";
}

}  // namespace spark::bench
