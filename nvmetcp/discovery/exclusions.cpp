#include "nvmetcp/discovery/exclusions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "etc/nvme/exclusions.conf";
constexpr const char* kFolder = "etc/nvme/exclusions.conf.d";
constexpr std::array<std::string_view, 8> kKeys = {"transport",   "traddr",     "trsvcid", "nqn",
                                                   "host-traddr", "host-iface", "hostnqn", "hostid"};

struct KeyValue {
  std::string_view key, value;
};

std::optional<KeyValue> key_value(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  return KeyValue{trim(text.substr(0, equals)), trim(text.substr(equals + 1))};
}

// "transport=tcp;traddr=192.0.2.10"; empty: not to be understood, or nothing in it.
std::map<std::string, std::string> fields_of(std::string_view text) {
  std::map<std::string, std::string> fields;
  for (const std::string& part : split(text, ';')) {
    if (trim(part).empty()) continue;
    const auto field = key_value(part);
    if (!field || field->value.empty() || std::ranges::find(kKeys, field->key) == kKeys.end()) return {};
    fields[std::string(field->key)] = field->value;
  }
  return fields;
}

using Identity = std::map<std::string, std::string>;

// A connection without a value for a field does not match.
bool matches(const Exclusion& exclusion, const Identity& connection) {
  return std::ranges::all_of(exclusion.fields, [&](const auto& field) {
    const auto& [key, wanted] = field;
    const auto has = connection.find(key);
    if (has == connection.end() || has->second.empty()) return false;
    return has->second == wanted || (key == "traddr" && same_address(has->second, wanted));
  });
}

void append(std::vector<Exclusion>& all, const fs::path& file, const std::string& shown_as) {
  const auto text = read_file(file);
  if (!text) return;
  for (Exclusion& one : parse_exclusions(*text, shown_as)) all.push_back(std::move(one));
}

}  // namespace

std::vector<Exclusion> parse_exclusions(std::string_view text, const std::string& file) {
  std::vector<Exclusion> all;
  bool is_in_section = false;
  std::size_t number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      is_in_section = line == "[exclusions]";
      continue;
    }
    const auto entry = key_value(line);
    if (!is_in_section || !entry || entry->key != "exclusion") continue;
    auto fields = fields_of(entry->value);
    if (!fields.empty()) all.push_back({file + ":" + std::to_string(number), std::move(fields)});
  }
  return all;
}

std::vector<Exclusion> read_exclusions(const SystemRoot& root) {
  std::vector<Exclusion> all;
  append(all, root / kFile, std::string("/") + kFile);
  std::vector<std::string> names;
  for (const fs::path& entry : list_folder(root / kFolder)) {
    if (entry.extension() == ".conf") names.push_back(entry.filename().native());
  }
  std::ranges::sort(names);
  for (const std::string& name : names)
    append(all, root / kFolder / name, std::string("/") + kFolder + "/" + printable(name));
  return all;
}

std::optional<Exclusion> find_exclusion(const std::vector<Exclusion>& all, const std::string& subsystem,
                                        const Portal& numeric, const HostIdentity& host,
                                        const std::string& interface) {
  const Identity connection = {
      {"transport", "tcp"}, {"traddr", numeric.address}, {"trsvcid", std::to_string(numeric.port)},
      {"nqn", subsystem},   {"host-iface", interface},   {"hostnqn", host.nqn},
      {"hostid", host.id}};
  for (const Exclusion& exclusion : all) {
    if (matches(exclusion, connection)) return exclusion;
  }
  return std::nullopt;
}

Result<> check_not_excluded(const SystemRoot& root, const std::string& subsystem, const Portal& numeric,
                            const HostIdentity& host, const std::string& interface) {
  const auto exclusion = find_exclusion(read_exclusions(root), subsystem, numeric, host, interface);
  if (!exclusion) return {};
  return fail(Errc::Refused,
              "connecting subsystem " + printable(subsystem) + " at " + to_string(numeric) + ": " +
                  exclusion->place + " excludes it from automatic connections",
              "take that line out, or the volume out of the configuration");
}

}  // namespace spark::nvmetcp
