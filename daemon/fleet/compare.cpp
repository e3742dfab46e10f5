#include "daemon/fleet/compare.hpp"

#include <map>
#include <string>

#include "base/text.hpp"

namespace spark::fleet {
namespace {

// By dataset name.
using Hosts = std::map<std::string, json::array>;

void add(Hosts& hosts, const json::value& host, const json::object& copy) {
  const auto name = get_string(copy, "name");
  const auto hash = get_string(copy, "hash");
  if (!name || !hash) return;
  hosts[printable(*name)].push_back(json::object{{"host", host},
                                                 {"generation", get_int(copy, "generation").value_or(0)},
                                                 {"hash", printable(*hash)},
                                                 {"bytes", get_int(copy, "bytes").value_or(0)},
                                                 {"files", get_int(copy, "files").value_or(0)}});
}

bool is_same(const json::array& copies) {
  for (const json::value& copy : copies)
    if (copy.as_object().at("hash") != copies.front().as_object().at("hash")) return false;
  return true;
}

}  // namespace

json::object compare_datasets(const json::array& own, const json::array& peers) {
  Hosts hosts;
  for (const json::value& row : own) {
    const bool is_ready = get_string(row.as_object(), "state") == "ready";
    if (is_ready) add(hosts, nullptr, row.as_object());
  }
  json::array shown;
  for (const json::value& value : peers) {
    json::object peer = value.as_object();
    for (const json::value& dataset : get_list(peer, "datasets"))
      add(hosts, peer.at("name"), dataset.as_object());
    peer.erase("datasets");
    shown.push_back(std::move(peer));
  }
  json::array datasets;
  for (auto& [name, copies] : hosts) {
    const bool same = is_same(copies);
    datasets.push_back(json::object{{"name", name}, {"same", same}, {"hosts", std::move(copies)}});
  }
  return {{"datasets", std::move(datasets)}, {"peers", std::move(shown)}};
}

}  // namespace spark::fleet
