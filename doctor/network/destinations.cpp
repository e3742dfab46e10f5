#include "doctor/network/destinations.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::doctor {
namespace {

constexpr std::uint16_t kNvmePort = 4420, kNfsPort = 2049;

// "[fd00::5]" is "fd00::5".
std::string without_brackets(std::string host) {
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  return host;
}

using Destinations = std::vector<Destination>;

void add(Destination to, Destinations& all) {
  const bool is_known = std::ranges::any_of(all, [&](const Destination& known) {
    return known.address == to.address && known.interface == to.interface;
  });
  if (!to.address.empty() && !is_known) all.push_back(std::move(to));
}

void add_by_hand(const host::ManualConnection& connection, const std::string& origin, Destinations& all) {
  if (!connection.transport.empty() && connection.transport != "tcp") return;
  if (connection.address.find_first_of("$%`") != std::string::npos) return;  // only systemd or a shell knows
  const auto port = parse_number<std::uint16_t>(connection.port).value_or(kNvmePort);
  const std::string name = connection.address + " (" + origin + ")";
  add({name, name, without_brackets(connection.address), connection.interface, port, "", false}, all);
}

void add_configured(const config::Config& config, Destinations& all) {
  for (const auto& [name, target] : config.targets) {
    for (const nvmetcp::Portal& portal : target.portals) {
      add({"target " + name, name, portal.address, target.options.interface, portal.port, "targets." + name,
           false},
          all);
    }
  }
  for (const config::Volume& volume : config.volumes) {
    if (!volume.nfs) continue;
    const std::string name = "NFS server of volume " + volume.name;
    add({name, name, without_brackets(volume.nfs->host), "", kNfsPort, "", true}, all);
  }
}

void add_found(const host::Survey& survey, Destinations& all) {
  for (const host::ConnectUnit& unit : survey.units) {
    for (const auto& connection : unit.connections) add_by_hand(connection, unit.name, all);
    for (const auto& connection : unit.discovered) add_by_hand(connection, unit.name, all);
  }
  for (const auto& connection : survey.config_json) add_by_hand(connection, "/etc/nvme/config.json", all);
  for (const auto& connection : survey.discovery_conf) {
    add_by_hand(connection, "/etc/nvme/discovery.conf", all);
  }
}

void add_connected(const SystemRoot& root, Destinations& all) {
  const auto controllers = nvmetcp::list_controllers(root);
  if (!controllers) return;  // check_connections says so
  for (const nvmetcp::Controller& controller : *controllers) {
    if (controller.transport != "tcp" || controller.is_going()) continue;
    const std::string name = controller.portal.address + " (" + controller.name + ")";
    add({name, name, controller.portal.address, controller.interface, controller.portal.port, "", false},
        all);
  }
}

// "192.168.0.98:/data", "[fd00::5]:/data"
void add_fstab(const host::Survey& survey, Destinations& all) {
  for (const host::FstabLine& line : survey.fstab) {
    const std::size_t path = line.source.find(":/");
    if (!line.is_nfs() || path == std::string::npos) continue;
    const std::string server = without_brackets(line.source.substr(0, path));
    const std::string name = server + " (line " + std::to_string(line.number) + " of /etc/fstab)";
    add({name, name, server, "", kNfsPort, "", true}, all);
  }
}

}  // namespace

std::vector<Destination> destinations_of(const Host& host, const host::Survey& survey) {
  Destinations all;
  add_configured(host.settings(), all);
  add_found(survey, all);
  add_connected(host.root, all);
  add_fstab(survey, all);
  return all;
}

}  // namespace spark::doctor
