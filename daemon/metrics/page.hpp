// What /metrics shows, put together for one scrape: families of samples, in our words.
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

// Of observations: how many, their sum, and of the latest some quantiles (rank between 0 and 1, value).
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
  std::vector<Sample> samples;                // of a gauge or a counter
  std::vector<Distribution> distributions{};  // of a summary
};

using Page = std::vector<Family>;

// In Prometheus's text format, version 0.0.4. Label values are printable already.
std::string to_text(const Page& page);

}  // namespace spark::metrics
