#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {

MetricsSettings read_metrics(const Node& node, Problems& problems) {
  Section section(node, "metrics", problems);
  MetricsSettings metrics;
  const auto text = section.text("listen");
  if (text && *text != "off") metrics.listen = section.accept("listen", parse_listen(*text));
  return metrics;
}

}  // namespace spark::config
