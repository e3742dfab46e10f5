// The way to each target: resolved, routed, through the right card, at its full packet size.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "doctor/doctor.hpp"
#include "doctor/mtu.hpp"
#include "doctor/nics.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::doctor {
namespace {

constexpr char kNetworkArea[] = "network";
constexpr unsigned kSlow = 10'000;  // Mb/s; a local NVMe is twenty times as fast as what is below

// A place of the configuration that is reached over the network.
struct Destination {
  std::string name;  // "target rose"
  std::string address, interface;
  std::uint16_t port = 0;
  std::string key;  // where `interface:` belongs: "targets.rose"; empty: nowhere
};

std::vector<Destination> destinations_of(const config::Config& config) {
  std::vector<Destination> all;
  for (const auto& [name, target] : config.targets) {
    for (const config::Portal& portal : target.portals) {
      all.push_back({"target " + name, portal.address, target.interface, portal.port, "targets." + name});
    }
  }
  std::set<std::string> hosts;
  for (const config::Volume& volume : config.volumes) {
    if (!volume.nfs || !hosts.insert(volume.nfs->host).second) continue;
    std::string host = volume.nfs->host;
    std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
    all.push_back({"NFS server of volume " + volume.name, host, "", 2049, ""});
  }
  return all;
}

// The name service may block.
Result<std::string> numeric_address(const Host& host, const Destination& to) {
  const auto answer = host.bounded([&]() -> Result<json::object> {
    const auto portals = nvmetcp::resolve({to.address, to.port});
    if (!portals) return tl::unexpected<Error>(portals.error());
    return json::object{{"address", portals->front().address}};
  });
  if (!answer) return tl::unexpected<Error>(answer.error());
  return get_string(*answer, "address").value_or(to.address);
}

std::string choose(const Destination& to, const Nic& nic) {
  if (to.key.empty())
    return "ip route add ADDRESS dev " + nic.name + ", or take the other card out of this network";
  return "write `interface: " + nic.name + "` under " + printable(to.key) +
         " in /etc/spark-stage/spark-stage.yaml, then: sudo systemctl reload spark-staged";
}

// A faster card in the target's own network that is not used.
const Nic* better_nic(const std::vector<Nic>& nics, const Nic& used, const std::string& address) {
  const Nic* best = nullptr;
  for (const Nic& nic : nics) {
    const bool reaches = std::any_of(nic.networks.begin(), nic.networks.end(),
                                     [&](const auto& network) { return is_in_network(address, network); });
    const bool faster =
        (used.megabits != 0 && nic.megabits > used.megabits) || (used.is_wireless && !nic.is_wireless);
    if (!reaches || !nic.is_up || nic.name == used.name || !faster) continue;
    if (best == nullptr || nic.megabits > best->megabits) best = &nic;
  }
  return best;
}

void check_card(const Destination& to, const std::vector<Nic>& nics, const Nic& used,
                const std::string& address, Report& report) {
  const Nic* better = to.interface.empty() ? better_nic(nics, used, address) : nullptr;
  if (better != nullptr) {
    report.wrong(kNetworkArea,
                 printable(to.name) + " is reached through " + used.name + " (" + speed_of(used) +
                     "), though " + better->name + " (" + speed_of(*better) + ") is in the same network",
                 "the kernel takes one card for a network, not the fastest", choose(to, *better));
  } else if (used.is_wireless) {
    report.wrong(kNetworkArea, printable(to.name) + " is reached over Wi-Fi (" + used.name + ")",
                 "volumes stall with every lost packet",
                 "connect a cable, and name its card under " + printable(to.key.empty() ? to.name : to.key));
  } else if (used.megabits != 0 && used.megabits < kSlow) {
    report.note(kNetworkArea,
                printable(to.name) + " is reached at " + speed_of(used) + " (" + used.name + ")",
                "that is the most that its volumes can give",
                "ethtool " + used.name + " tells what both ends can do");
  }
  if (!used.is_up) {
    report.wrong(kNetworkArea, printable(used.name) + ", the card to " + printable(to.name) + ", has no link",
                 "nothing is reached through it",
                 "look at the cable and the switch; ip link show " + used.name);
  }
}

Bytes carried(const std::vector<Nic>& nics, const std::string& name, Bytes Nic::*counter) {
  const Nic* nic = find_nic(nics, name);
  return nic == nullptr ? 0 : nic->*counter;
}

// Two cards in one network answer for each other: what went out of one may come back by the other.
void check_return(const Destination& to, const std::vector<Nic>& before, const std::vector<Nic>& after,
                  const std::string& used, Bytes expected, Report& report) {
  const auto grown = [&](const std::string& name) {
    const Bytes was = carried(before, name, &Nic::received), is = carried(after, name, &Nic::received);
    return is > was ? is - was : 0;
  };
  if (grown(used) >= expected / 2) return;
  for (const Nic& other : after) {
    if (other.name == used || grown(other.name) < expected / 2) continue;
    report.wrong(
        kNetworkArea,
        "what " + printable(to.name) + " sends comes in through " + other.name + ", not through " + used,
        "two cards in one network answer for each other, and the slower one may carry the data",
        "give each card a network of its own, or: sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 "
        "net.ipv4.conf.all.arp_announce=2");
  }
}

void check_packets(const Host& host, const Destination& to, const std::vector<Nic>& nics, const Nic& used,
                   const std::string& address, Report& report) {
  const auto size = probe_path(host, address, to.interface, used.mtu);
  if (!size || !size->answers) {
    report.unknown.push_back("packet size to " + printable(to.name) +
                             (size ? " (it does not answer ping)" : " (ping: " + size.error().what + ")"));
    return;
  }
  if (size->works < used.mtu) {
    report.wrong(kNetworkArea,
                 "packets of " + std::to_string(used.mtu) + " bytes do not reach " + printable(to.name) +
                     ", " + std::to_string(size->works) + " do",
                 "a connect works, and the first large read hangs",
                 "sudo ip link set " + used.name + " mtu " + std::to_string(size->works) +
                     " (and in netplan), or raise it on the switch and the target");
  }
  check_return(to, nics, list_nics(host), used.name, Bytes{kProbePackets} * size->works, report);
}

void check_destination(const Host& host, const Destination& to, const std::vector<Nic>& nics,
                       Report& report) {
  const auto address = numeric_address(host, to);
  if (!address) {
    report.wrong(kNetworkArea, printable(to.name) + ": " + address.error().what,
                 "it is found again at every attempt", "getent hosts " + printable(to.address));
    return;
  }
  const auto route = route_to(host, *address, to.interface);
  if (!route && (route.error().kind == Errc::NotFound || route.error().kind == Errc::TimedOut)) {
    report.unknown.push_back("the way to " + printable(to.name) + " (ip: " + route.error().what + ")");
    return;
  }
  if (!route) {
    report.wrong(kNetworkArea,
                 "there is no way to " + printable(to.name) + " (" + printable(*address) + ")" +
                     (to.interface.empty() ? "" : " through " + printable(to.interface)) + ": " +
                     route.error().what,
                 "it can't be reached", "ip address; ip route get " + printable(*address));
    return;
  }
  const Nic* used = find_nic(nics, route->interface);
  if (used == nullptr) return;  // lo: the target is this host
  check_card(to, nics, *used, *address, report);
  if (!route->gateway.empty()) {
    report.note(kNetworkArea,
                printable(to.name) + " is reached through the router " + printable(route->gateway),
                "storage over a router is slower, and its port should be open to the storage network alone",
                "give this host an address in the target's network");
  }
  check_packets(host, to, nics, *used, *address, report);
}

}  // namespace

void check_network(const Host& host, Report& report) {
  const auto destinations = destinations_of(host.settings());
  if (destinations.empty()) return;
  const std::size_t before = report.findings.size();
  for (const Destination& to : destinations) {
    // Anew each time: the counters move.
    check_destination(host, to, list_nics(host), report);
  }
  report.fine_since(before, "network to the targets");
}

}  // namespace spark::doctor
