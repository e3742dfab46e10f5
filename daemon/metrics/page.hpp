// The content of /metrics for one scrape: families of samples, independent of the text format.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spark::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;  // name, value

struct Sample {
  Labels labels;
  double value = 0;
};

// Summary of observations: their number, their sum, and quantiles of the latest (rank between 0 and 1,
// value).
struct Distribution {
  Labels labels;
  std::uint64_t count = 0;
  double sum = 0;
  std::vector<std::pair<double, double>> quantiles;
};

enum class Kind { Gauge, Counter, Summary };

struct Family {
  std::string name, help;
  Kind kind = Kind::Gauge;
  std::vector<Sample> samples;                // for a gauge or a counter
  std::vector<Distribution> distributions{};  // for a summary
};

using Page = std::vector<Family>;

// In Prometheus's text format, version 0.0.4. Label values are already printable.
std::string to_text(const Page& page);

}  // namespace spark::metrics
