#include <array>
#include <map>

#include "base/text.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

using volumes::State;

constexpr std::array kVolumeStates = {State::Waiting, State::Connecting, State::Mounting,   State::Ready,
                                      State::Stalled, State::Lost,       State::Recovering, State::Refused,
                                      State::Leaving, State::Down};

Labels of(const VolumeFacts& volume) {
  return {{"volume", volume.settings->name}};
}

void add_states(Page& page, const std::vector<VolumeFacts>& volumes) {
  Family& info = gauge(page, "spark_stage_volume_info", "Properties of the volume; the value is always 1.");
  Family& states =
      gauge(page, "spark_stage_volume_state", "1 for the state that the volume is in, 0 for all others.");
  Family& since = gauge(page, "spark_stage_volume_state_change_timestamp_seconds",
                        "When the volume came into its state.");
  Family& warnings =
      gauge(page, "spark_stage_volume_warnings", "Active warnings; `spark-stage status` has them.");
  for (const VolumeFacts& volume : volumes) {
    const auto& [settings, status] = volume;
    info.add({{"volume", settings->name},
              {"kind", settings->nfs ? "nfs" : "nvme-tcp"},
              {"access", config::to_string(settings->access)},
              {"mount", printable(settings->mount.native())}},
             1);
    for (const State state : kVolumeStates)
      states.add({{"volume", settings->name}, {"state", to_string(state)}}, status->state == state);
    since.add(of(volume), status->since);
    warnings.add(of(volume), volumes::all_warnings(*status).size());
  }
}

void add_outages(Page& page, const std::vector<VolumeFacts>& volumes) {
  Family& outages =
      counter(page, "spark_stage_volume_outages_total",
              "Times that a volume that was ready stopped answering; kept when the daemon is restarted.");
  Family& reconnects =
      counter(page, "spark_stage_volume_reconnects_total", "Outages that ended when the kernel reconnected.");
  Family& recoveries = counter(page, "spark_stage_volume_recoveries_total",
                               "Outages that ended because spark-staged reconnected or remounted.");
  Family& last = gauge(page, "spark_stage_volume_last_outage_seconds",
                       "How long the last outage that is over lasted; absent before the first.");
  for (const VolumeFacts& volume : volumes) {
    const volumes::History& history = volume.status->history;
    outages.add(of(volume), history.outage_count());
    reconnects.add(of(volume), history.reconnects());
    recoveries.add(of(volume), history.recoveries());
    last.add(of(volume), history.last_outage_s());
  }
}

void add_drives(Page& page, const std::vector<VolumeFacts>& volumes) {
  Family& warnings = gauge(page, "spark_stage_volume_drive_warnings",
                           "Critical warnings of the target's drives; absent if it tells none.");
  Family& temperature = gauge(page, "spark_stage_volume_drive_temperature_celsius",
                              "Temperature of the target's drives, if it measures one.");
  Family& spare = gauge(page, "spark_stage_volume_drive_spare_ratio",
                        "Spare blocks of the target's drives, of all that they had.");
  Family& used = gauge(page, "spark_stage_volume_drive_used_ratio",
                       "Endurance of the target's drives that is used; may exceed 1.");
  Family& errors = counter(page, "spark_stage_volume_drive_media_errors_total",
                           "Reads and writes that the target's drives could not do.");
  constexpr double kPercent = 0.01;
  for (const VolumeFacts& volume : volumes) {
    if (!volume.status->drives) continue;
    const nvmetcp::Smart& smart = volume.status->drives->smart;
    warnings.add(of(volume), smart.critical.size());
    temperature.add(of(volume), smart.temperature_c);
    if (smart.spare_percent) spare.add(of(volume), *smart.spare_percent * kPercent);
    used.add(of(volume), smart.used_percent * kPercent);
    errors.add(of(volume), smart.media_errors);
  }
}

// By address, which stays the same when the kernel renumbers the controller. Two controllers to one address
// are one path.
void add_paths(Page& page, const std::vector<VolumeFacts>& volumes) {
  Family& paths = gauge(page, "spark_stage_volume_path_up",
                        "1 while a controller to this address of the volume's target is live, else 0.");
  for (const auto& [settings, status] : volumes) {
    std::map<std::string, bool> live;
    for (const volumes::PathStatus& path : status->paths)
      live[printable(path.address)] |= path.state == "live";
    for (const auto& [address, is_live] : live)
      paths.add({{"volume", settings->name}, {"address", address}}, is_live);
  }
}

void add_probes(Page& page, const std::vector<VolumeFacts>& volumes) {
  Family probes{"spark_stage_volume_probe_seconds",
                "How long a direct read of the volume's superblock took; the quantiles are of the last 256.",
                Kind::Summary};
  constexpr double kMicro = 1e-6;
  for (const VolumeFacts& volume : volumes) {
    const volumes::Latencies& latencies = volume.status->probes;
    Distribution distribution{of(volume), latencies.count(), latencies.sum_us() * kMicro, {}};
    for (const double rank : {0.5, 0.99}) {
      if (const auto us = latencies.percentile(rank)) distribution.quantiles.emplace_back(rank, *us * kMicro);
    }
    probes.distributions.push_back(std::move(distribution));
  }
  page.push_back(std::move(probes));
}

}  // namespace

void add_volumes(Page& page, const std::vector<VolumeFacts>& volumes) {
  add_states(page, volumes);
  add_outages(page, volumes);
  add_drives(page, volumes);
  add_paths(page, volumes);
  add_probes(page, volumes);
}

}  // namespace spark::metrics
