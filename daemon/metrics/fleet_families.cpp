#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

// By peer: several addresses may belong to one.
std::map<std::string, json::object> by_name(const json::object& fleet, std::string_view key) {
  std::map<std::string, json::object> all;
  for (const json::object& one : objects_in(fleet, key)) {
    json::object& sum = all[get_shown(one, "name")];
    for (const char* figure : {"bytes", "failures"})
      sum[figure] = get_int(sum, figure).value_or(0) + get_int(one, figure).value_or(0);
    sum["answers"] = get_bool(one, "answers").value_or(false);
  }
  return all;
}

}  // namespace

void add_fleet(Page& page, const json::value& status) {
  const json::object* fleet = status.if_object();
  if (fleet == nullptr) return;
  Family up{"spark_stage_fleet_peer_up", "1 if the peer answers.", Kind::Gauge};
  auto clients = by_name(*fleet, "clients");
  for (const auto& [name, peer] : by_name(*fleet, "peers")) {
    up.add({{"peer", name}}, peer.at("answers").as_bool());
    clients.try_emplace(name);  // its counters begin at 0
  }
  Family bytes{"spark_stage_fleet_served_bytes_total", "Bytes sent to the peer.", Kind::Counter};
  Family failures{"spark_stage_fleet_failures_total",
                  "Pieces that could not be read for the peer, or not be sent to their end.", Kind::Counter};
  for (const auto& [name, client] : clients) {
    bytes.add({{"peer", name}}, get_count(client, "bytes"));
    failures.add({{"peer", name}}, get_count(client, "failures"));
  }
  Family refused{"spark_stage_fleet_refused_connections_total", "Refused connections.", Kind::Counter};
  if (const json::object* by = get_object(*fleet, "refused_by"))
    for (const auto& [reason, count] : *by)
      refused.add({{"reason", std::string(reason)}}, get_count(*by, reason));
  gauge(page, "spark_stage_fleet_serving", "1 while this host serves its peers.")
      .add({}, get_bool(*fleet, "serving").value_or(false));
  gauge(page, "spark_stage_fleet_buffers_in_use", "Buffers of 8 MiB with data for peers.")
      .add({}, get_count(*fleet, "buffers_in_use"));
  for (Family* family : {&up, &bytes, &failures, &refused})
    if (!family->samples.empty()) page.push_back(std::move(*family));
}

}  // namespace spark::metrics
