#include "migration/replaced.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::host {
namespace {

// The configuration has it, and no part of it was left out.
bool is_replaced(const std::string& subsystem, const std::vector<Item>& items) {
  const auto is_of = [&](const Item& item) { return item.subsystem == subsystem; };
  const auto is_left = [&](const Item& item) { return is_of(item) && !item.is_taken(); };
  return std::ranges::any_of(items, is_of) && std::ranges::none_of(items, is_left);
}

std::string not_replaced(const std::string& subsystem) {
  return "it connects " + printable(subsystem) + ", which is not taken over as a whole";
}

bool is_connected(const ManualConnection& connection, const Survey& survey) {
  if (!connection.transport.empty() && connection.transport != "tcp") return false;
  return std::ranges::any_of(survey.devices, [&](const FabricDevice& device) {
    return std::ranges::any_of(device.paths, [&](const nvmetcp::Controller& path) {
      return path.portal.address == connection.address;
    });
  });
}

// Everything at an address, of `connect-all` or a file of nvme-cli.
std::string reason_of_offer(const ManualConnection& connection, const Survey& survey,
                            const std::vector<Item>& items) {
  const std::string& subsystem = connection.subsystem;
  if (!subsystem.empty() && subsystem != nvmetcp::kDiscoveryNqn)
    return is_replaced(subsystem, items) ? "" : not_replaced(subsystem);
  if (is_connected(connection, survey)) return {};
  return "it connects " + printable(connection.address) + ", where no connection over TCP leads to now";
}

std::string reason_of_connect_all(const ConnectUnit& unit, const Survey& survey,
                                  const std::vector<Item>& items) {
  if (survey.devices.empty()) return "what it connects is known only while it is connected";
  for (const FabricDevice& device : survey.devices) {
    if (!is_replaced(device.subsystem, items)) return not_replaced(device.subsystem);
  }
  std::vector<ManualConnection> offers;
  for (const ManualConnection& connection : unit.discovered) {
    for (const char* elsewhere : {"config", "cfg-file", "nbft", "device"}) {
      if (connection.settings.contains(elsewhere))
        return std::string("--") + elsewhere + " says what it connects, and that is not read here";
    }
    if (!connection.address.empty()) {
      offers.push_back(connection);
      continue;
    }
    offers.insert(offers.end(), survey.discovery_conf.begin(), survey.discovery_conf.end());
    offers.insert(offers.end(), survey.config_json.begin(), survey.config_json.end());
  }
  for (const ManualConnection& offer : offers) {
    if (std::string reason = reason_of_offer(offer, survey, items); !reason.empty()) return reason;
  }
  return {};
}

bool is_understood(const ManualConnection& connection) {
  return std::ranges::none_of(connection.unknown, [](const std::string& word) {
    return word == "nvme" || word.ends_with("/nvme") || word == "connect" || word == "connect-all";
  });
}

// `mount /mnt/data`, where a volume is mounted from now on.
bool mounts_a_volume(const std::string& command, const std::vector<Item>& items) {
  const auto words = split(command, ' ');
  if (words.front() != "mount" && !words.front().ends_with("/mount")) return false;
  return std::ranges::any_of(items, [&](const Item& item) {
    return item.is_taken() && item.what.starts_with("volume ") && words.back() == item.where;
  });
}

bool gives_way(const std::string& file, const std::vector<Item>& items) {
  return std::ranges::any_of(items, [&](const Item& item) {
    return item.is_taken() &&
           std::ranges::any_of(item.units, [&](const UnitFile& unit) { return unit.file == file; });
  });
}

// `x-systemd.requires=` in a line that stays: without the unit, the next boot would not mount it.
std::string line_that_needs(const ConnectUnit& unit, const Survey& survey, const std::vector<Item>& items) {
  for (const FstabLine& line : survey.fstab) {
    const auto options = split(line.options, ',');
    if (std::ranges::find(options, "x-systemd.requires=" + unit.name) == options.end()) continue;
    const bool is_replaced = std::ranges::any_of(
        items, [&](const Item& item) { return item.is_taken() && item.fstab_line == line.text; });
    if (!is_replaced) return "line " + std::to_string(line.number) + " of /etc/fstab";
  }
  return {};
}

}  // namespace

std::string reason_to_keep(const ConnectUnit& unit, const Survey& survey, const std::vector<Item>& items) {
  for (const ManualConnection& connection : unit.connections) {
    if (!is_understood(connection)) return "its commands are not all understood";
    if (!is_replaced(connection.subsystem, items)) return not_replaced(connection.subsystem);
  }
  for (const std::string& command : unit.others) {
    if (!mounts_a_volume(command, items)) return "it also runs `" + printable(command) + "`";
  }
  for (const std::string& file : unit.needed_by) {
    if (!gives_way(file, items)) return printable(file) + " needs it";
  }
  if (const std::string line = line_that_needs(unit, survey, items); !line.empty()) return line + " needs it";
  return unit.connects_all ? reason_of_connect_all(unit, survey, items) : "";
}

}  // namespace spark::host
