#include "migration/survey/nvme_cli_files.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "migration/survey/words.hpp"

namespace spark::host {
namespace {

// nvme-cli writes numbers, booleans and texts as they come.
std::string text_of(const json::value& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  if (value.is_bool()) return value.get_bool() ? "" : "false";
  return json::serialize(value);
}

ManualConnection connection_of(const json::object& port, const std::string& subsystem) {
  ManualConnection connection;
  for (const auto& [key, value] : port) {
    const std::string name(key.data(), key.size());
    if (value.is_bool() && !value.get_bool()) continue;  // a flag that is off
    if (!take_setting(connection, name, text_of(value))) connection.unknown.push_back(without_key(name));
  }
  connection.subsystem = without_key(subsystem);
  return connection;
}

// What a host's entry says holds for all its connections that say nothing else.
void inherit(const json::object& host, ManualConnection& connection) {
  ManualConnection common;
  for (const char* name : {"hostnqn", "hostid", "dhchap_key"}) {
    if (const auto value = get_string(host, name)) take_setting(common, name, *value);
  }
  connection.settings.merge(common.settings);
}

void read_host(const json::object& host, std::vector<ManualConnection>& connections) {
  for (const json::object& subsystem : objects_in(host, "subsystems")) {
    const auto nqn = get_string(subsystem, "nqn");
    if (!nqn) continue;
    for (const json::object& port : objects_in(subsystem, "ports")) {
      connections.push_back(connection_of(port, *nqn));
      inherit(host, connections.back());
    }
  }
}

}  // namespace

std::vector<ManualConnection> parse_discovery_conf(std::string_view text) {
  std::vector<ManualConnection> connections;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty() || trim(line).starts_with('#')) continue;
    connections.push_back(parse_connect_options(words_of(line)));
  }
  return connections;
}

Result<std::vector<ManualConnection>> parse_config_json(std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed) return parsed.take_error();
  const json::array* hosts = parsed->if_array();
  if (hosts == nullptr && parsed->is_object()) hosts = get_array(parsed->get_object(), "hosts");
  if (hosts == nullptr) return fail(Errc::Invalid, "it has no list of hosts");
  std::vector<ManualConnection> connections;
  for (const json::value& host : *hosts) {
    if (host.is_object()) read_host(host.get_object(), connections);
  }
  return connections;
}

}  // namespace spark::host
