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

double seconds_since_1970(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Labels of(const VolumeFacts& volume) {
  return {{"volume", volume.settings->name}};
}

template <class Value>
Family one_each(const char* name, const char* help, Kind kind, const std::vector<VolumeFacts>& volumes,
                Value value) {
  Family family{name, help, kind, {}};
  for (const VolumeFacts& volume : volumes) {
    const auto known = value(*volume.status);
    if constexpr (std::is_arithmetic_v<std::remove_const_t<decltype(known)>>) {
      family.samples.push_back({of(volume), static_cast<double>(known)});
    } else if (known) {
      family.samples.push_back({of(volume), *known});
    }
  }
  return family;
}

Family info(const std::vector<VolumeFacts>& volumes) {
  Family family{
      "spark_stage_volume_info", "Properties of the volume; the value is always 1.", Kind::Gauge, {}};
  for (const auto& [settings, status] : volumes) {
    family.samples.push_back({{{"volume", settings->name},
                               {"kind", settings->nfs ? "nfs" : "nvme-tcp"},
                               {"access", config::to_string(settings->access)},
                               {"mount", printable(settings->mount.native())}},
                              1});
  }
  return family;
}

Family states(const std::vector<VolumeFacts>& volumes) {
  Family family{"spark_stage_volume_state",
                "1 for the state that the volume is in, 0 for all others.",
                Kind::Gauge,
                {}};
  for (const auto& [settings, status] : volumes) {
    for (const State state : kVolumeStates) {
      family.samples.push_back(
          {{{"volume", settings->name}, {"state", to_string(state)}}, status->state == state ? 1.0 : 0.0});
    }
  }
  return family;
}

// By address, which stays the same when the kernel renumbers the controller. Two controllers to one address
// are one path.
Family paths(const std::vector<VolumeFacts>& volumes) {
  Family family{"spark_stage_volume_path_up",
                "1 while a controller to this address of the volume's target is live, else 0.",
                Kind::Gauge,
                {}};
  for (const auto& [settings, status] : volumes) {
    std::map<std::string, bool> live;
    for (const volumes::PathStatus& path : status->paths) {
      live[printable(path.address)] |= path.state == "live";
    }
    for (const auto& [address, is_live] : live) {
      family.samples.push_back({{{"volume", settings->name}, {"address", address}}, is_live ? 1.0 : 0.0});
    }
  }
  return family;
}

Family probes(const std::vector<VolumeFacts>& volumes) {
  Family family{"spark_stage_volume_probe_seconds",
                "How long a direct read of the volume's superblock took; the quantiles are of the last 256.",
                Kind::Summary,
                {}};
  constexpr double kMicro = 1e-6;
  for (const VolumeFacts& volume : volumes) {
    const volumes::Latencies& latencies = volume.status->probes;
    Distribution distribution{of(volume), latencies.count(), latencies.sum_us() * kMicro, {}};
    for (const double rank : {0.5, 0.99}) {
      if (const auto us = latencies.percentile(rank)) distribution.quantiles.emplace_back(rank, *us * kMicro);
    }
    family.distributions.push_back(std::move(distribution));
  }
  return family;
}

void add_drives(Page& page, const std::vector<VolumeFacts>& volumes) {
  const auto add = [&](const char* name, const char* help, Kind kind, auto value) {
    page.push_back(
        one_each(name, help, kind, volumes, [value](const volumes::Status& status) -> std::optional<double> {
          if (!status.drives) return std::nullopt;
          return value(status.drives->smart);
        }));
  };
  constexpr double kPercent = 0.01;
  using nvmetcp::Smart;
  using Number = std::optional<double>;
  add("spark_stage_volume_drive_warnings",
      "Critical warnings of the target's drives; absent if it tells none.", Kind::Gauge,
      [](const Smart& smart) -> Number { return static_cast<double>(smart.critical.size()); });
  add("spark_stage_volume_drive_temperature_celsius",
      "Temperature of the target's drives, if it measures one.", Kind::Gauge,
      [](const Smart& smart) -> Number { return smart.temperature_c; });
  add("spark_stage_volume_drive_spare_ratio", "Spare blocks of the target's drives, of all that they had.",
      Kind::Gauge, [](const Smart& smart) -> Number {
        return smart.spare_percent ? Number(*smart.spare_percent * kPercent) : std::nullopt;
      });
  add("spark_stage_volume_drive_used_ratio", "Endurance of the target's drives that is used; may exceed 1.",
      Kind::Gauge, [](const Smart& smart) -> Number { return smart.used_percent * kPercent; });
  add("spark_stage_volume_drive_media_errors_total",
      "Reads and writes that the target's drives could not do.", Kind::Counter,
      [](const Smart& smart) -> Number { return static_cast<double>(smart.media_errors); });
}

}  // namespace

void add_volumes(Page& page, const std::vector<VolumeFacts>& volumes) {
  using volumes::Status;
  page.push_back(info(volumes));
  page.push_back(states(volumes));
  page.push_back(one_each("spark_stage_volume_state_change_timestamp_seconds",
                          "When the volume came into its state.", Kind::Gauge, volumes,
                          [](const Status& status) { return seconds_since_1970(status.since); }));
  page.push_back(
      one_each("spark_stage_volume_outages_total",
               "Times that a volume that was ready stopped answering; kept when the daemon is restarted.",
               Kind::Counter, volumes, [](const Status& status) { return status.history.outage_count(); }));
  page.push_back(one_each("spark_stage_volume_reconnects_total",
                          "Outages that ended when the kernel reconnected.", Kind::Counter, volumes,
                          [](const Status& status) { return status.history.reconnects(); }));
  page.push_back(one_each("spark_stage_volume_recoveries_total",
                          "Outages that ended because spark-staged reconnected or remounted.", Kind::Counter,
                          volumes, [](const Status& status) { return status.history.recoveries(); }));
  page.push_back(one_each("spark_stage_volume_last_outage_seconds",
                          "How long the last outage that is over lasted; absent before the first.",
                          Kind::Gauge, volumes,
                          [](const Status& status) { return status.history.last_outage_s(); }));
  page.push_back(one_each("spark_stage_volume_warnings", "Active warnings; `spark-stage status` has them.",
                          Kind::Gauge, volumes,
                          [](const Status& status) { return volumes::all_warnings(status).size(); }));
  add_drives(page, volumes);
  page.push_back(paths(volumes));
  page.push_back(probes(volumes));
}

}  // namespace spark::metrics
