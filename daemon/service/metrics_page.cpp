// The page of /metrics from everything that the daemon knows.
#include "daemon/metrics/families.hpp"
#include "daemon/service/service.hpp"

namespace spark {

std::string Service::metrics_text() const {
  std::vector<metrics::VolumeFacts> volumes;
  for (const auto& volume : volumes_.all()) volumes.push_back({&volume->settings(), &volume->status()});

  metrics::DatasetFacts datasets;
  if (auto list = datasets_.list()) datasets.list = std::move(*list);
  datasets.cache = datasets_.cache();
  datasets.totals = datasets_.totals();
  datasets.leases = datasets_.leases().all().size();

  metrics::DaemonFacts daemon;
  daemon.workers = runner_.counts();
  daemon.abandoned_now = runner_.abandoned().size();
  daemon.last_reload_worked = last_reload_worked_;
  daemon.config_loaded = config_loaded_;

  metrics::Page page;
  metrics::add_volumes(page, volumes);
  metrics::add_datasets(page, datasets);
  metrics::add_daemon(page, daemon);
  metrics::add_process(page, SystemRoot{});
  return metrics::to_text(page);
}

}  // namespace spark
