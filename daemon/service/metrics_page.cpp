#include "daemon/service/metrics_page.hpp"

#include "daemon/metrics/families.hpp"

namespace spark {

std::string metrics_text(const DaemonParts& daemon) {
  std::vector<metrics::VolumeFacts> volumes;
  for (const auto& volume : daemon.volumes.all()) volumes.push_back({&volume->settings(), &volume->status()});

  metrics::DatasetFacts datasets;
  if (auto list = daemon.datasets.list()) datasets.list = std::move(*list);
  datasets.cache = daemon.datasets.cache();
  datasets.totals = daemon.datasets.totals();
  datasets.leases = daemon.datasets.leases().all().size();

  metrics::DaemonFacts facts;
  facts.workers = daemon.runner.counts();
  facts.abandoned_now = daemon.runner.abandoned().size();
  facts.last_reload_worked = daemon.config.problem().empty();
  facts.config_loaded = daemon.config.loaded_at();

  metrics::Page page;
  metrics::add_volumes(page, volumes);
  metrics::add_datasets(page, datasets);
  metrics::OutputFacts outputs{daemon.outputs.totals(), daemon.outputs.backlog(), {}};
  for (const auto& [name, output] : daemon.output_watches.all()) {
    const outputs::OutputFacts& facts = output->facts();
    outputs.watched.push_back(
        {name, facts.published_mtime_ns, facts.backlog, facts.failures, facts.is_behind});
  }
  metrics::add_outputs(page, outputs);
  metrics::add_fleet(page, daemon.peers.status());
  metrics::add_daemon(page, facts);
  metrics::add_process(page, SystemRoot{});
  return metrics::to_text(page);
}

}  // namespace spark
