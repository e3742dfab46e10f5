// The content of /metrics for one scrape: families of samples, independent of the text format.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

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
  std::vector<Sample> samples{};              // for a gauge or a counter
  std::vector<Distribution> distributions{};  // for a summary

  template <class Number>
  Family& add(Labels labels, Number value) {
    samples.push_back({std::move(labels), static_cast<double>(value)});
    return *this;
  }
  Family& add(Labels labels, WallTime value) {
    return add(std::move(labels), std::chrono::duration<double>(value.time_since_epoch()).count());
  }
  // No sample while the value is unknown.
  template <class Number>
  Family& add(Labels labels, std::optional<Number> value) {
    return value ? add(std::move(labels), *value) : *this;
  }
};

using Page = std::deque<Family>;  // references to its families stay valid

inline Family& gauge(Page& page, std::string name, std::string help) {
  return page.emplace_back(Family{std::move(name), std::move(help), Kind::Gauge});
}
inline Family& counter(Page& page, std::string name, std::string help) {
  return page.emplace_back(Family{std::move(name), std::move(help), Kind::Counter});
}

// In Prometheus's text format, version 0.0.4. Label values are already printable.
std::string to_text(const Page& page);

}  // namespace spark::metrics
