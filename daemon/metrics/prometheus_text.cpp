// The only code that uses prometheus-cpp, and only its text format, which handles escaping. Its registry
// stores values permanently; here they are read at each scrape from their owners.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>

#include "daemon/metrics/page.hpp"

namespace spark::metrics {
namespace {

prometheus::MetricType type_of(Kind kind) {
  using prometheus::MetricType;
  constexpr std::array kTypes = {MetricType::Gauge, MetricType::Counter, MetricType::Summary};
  return kTypes[static_cast<std::size_t>(kind)];
}

prometheus::ClientMetric with_labels(const Labels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

prometheus::MetricFamily translate(const Family& family) {
  prometheus::MetricFamily out;
  out.name = family.name;
  out.help = family.help;
  out.type = type_of(family.kind);
  for (const Sample& sample : family.samples) {
    out.metric.push_back(with_labels(sample.labels));
    out.metric.back().gauge.value = sample.value;
    out.metric.back().counter.value = sample.value;
  }
  for (const Distribution& distribution : family.distributions) {
    out.metric.push_back(with_labels(distribution.labels));
    auto& summary = out.metric.back().summary;
    summary.sample_count = distribution.count;
    summary.sample_sum = distribution.sum;
    for (const auto& [rank, value] : distribution.quantiles) summary.quantile.push_back({rank, value});
  }
  return out;
}

}  // namespace

std::string to_text(const Page& page) {
  std::vector<prometheus::MetricFamily> families;
  for (const Family& family : page) families.push_back(translate(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace spark::metrics
