// The way to each target: resolved, routed, through the right card, at its full packet size.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "doctor/network/destinations.hpp"
#include "doctor/network/ingress_nic.hpp"
#include "doctor/network/mtu.hpp"
#include "doctor/network/network.hpp"
#include "doctor/network/nics.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::doctor {
namespace {

constexpr char kNetworkArea[] = "network";
constexpr unsigned kSlow = 10'000;  // Mb/s; a local NVMe is twenty times as fast as a slower link

// The name service may block.
Result<std::string> numeric_address(const Host& host, const Destination& to) {
  const auto answer = host.bounded([&]() -> Result<json::object> {
    const auto portals = nvmetcp::resolve({to.address, to.port});
    if (!portals) return portals.take_error();
    return json::object{{"address", portals->front().address}};
  });
  if (!answer) return answer.take_error();
  return get_string(*answer, "address").value_or(to.address);
}

std::string choose(const Destination& to, const std::string& address, const Nic& nic) {
  if (!to.key.empty())
    return "write `interface: " + nic.name + "` under " + printable(to.key) +
           " in /etc/spark-stage/spark-stage.yaml, then: sudo systemctl reload spark-staged";
  const std::string route = "sudo ip route add " + printable(address) + " dev " + nic.name;
  return (to.is_nfs ? route : "connect with `--host-iface=" + nic.name + "`, or: " + route) +
         ", or take the other card out of this network";
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
                 "the kernel takes one card for a network, not the fastest", choose(to, address, *better));
  } else if (used.is_wireless) {
    report.wrong(kNetworkArea, printable(to.name) + " is reached over Wi-Fi (" + used.name + ")",
                 "volumes stall with every lost packet",
                 "connect a cable, and name its card under " + printable(to.key.empty() ? to.name : to.key));
  } else if (used.megabits != 0 && used.megabits < kSlow) {
    report.note(kNetworkArea,
                printable(to.name) + " is reached at " + speed_of(used) + " (" + used.name + ")",
                "that is the most that its volumes can give",
                "ethtool " + used.name + " shows the speeds of both ends");
  }
  if (!used.is_up) {
    report.wrong(kNetworkArea, printable(used.name) + ", the card to " + printable(to.name) + ", has no link",
                 "nothing is reached through it",
                 "look at the cable and the switch; ip link show " + used.name);
  }
}

// Two cards in one network answer for each other: a reply may arrive at the other card.
void report_other_card(const Destination& to, const std::string& used, const std::string& other,
                       Report& report) {
  report.wrong(kNetworkArea,
               "data from " + printable(to.name) + " arrives through " + other + ", not through " + used,
               "two cards in one network answer for each other, and the slower one may carry the data",
               "give each card a network of its own, or: sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 "
               "net.ipv4.conf.all.arp_announce=2");
}

void check_packets(const Host& host, const Destination& to, const std::vector<Nic>& nics, const Nic& used,
                   NetworkWay& way, Report& report) {
  // A card with jumbo frames and a target without agree upon the smaller size: only a device between them
  // drops packets.
  const auto agreed = host.negotiated_packet({way.address, to.port}, to.interface);
  const unsigned packet = agreed ? std::min(*agreed, used.mtu) : used.mtu;
  const auto size = probe_path(host, way.address, to.interface, packet);
  if (!size || !size->answers) {
    report.unknown.push_back("packet size to " + printable(to.name) +
                             (size ? " (it does not answer ping)" : " (ping: " + size.error().what + ")"));
    return;
  }
  way.packet = size->works;
  if (size->works == 0) {
    report.note(
        kNetworkArea, printable(to.name) + " answers small echo requests, and no large ones",
        "a firewall that drops those is no fault; a device that drops all large packets is: a connect "
        "works, and the first large read hangs",
        "look for limits of ICMP at the target and on the way; once it is connected, sudo spark-stage "
        "doctor --network shows whether large reads pass");
    return;
  }
  if (size->works < packet && !agreed) {
    report.unknown.push_back("the packet size that TCP uses to " + printable(to.name) + " (" +
                             agreed.error().what + ")");
  } else if (size->works < packet) {
    report.wrong(kNetworkArea,
                 "packets of " + std::to_string(packet) + " bytes do not reach " + printable(to.name) + ", " +
                     std::to_string(size->works) + " do",
                 "both ends agreed upon that size, and a device between them drops it: a connect works, and "
                 "the first large read hangs",
                 "sudo ip link set " + used.name + " mtu " + std::to_string(size->works) +
                     " (and in netplan), or raise it on the switch");
  }
  const std::string card =
      card_that_grew(nics, read_nics(host.root), used.name, Bytes{kProbePackets} * size->works);
  if (!card.empty() && card != used.name) report_other_card(to, used.name, card, report);
}

// Not of a way that is known to be broken: the read would hang, and the kernel end the connection for it.
void check_data(const Host& host, const Destination& to, const host::Survey& survey, const Nic& used,
                NetworkWay& way, Report& report) {
  const std::string device = to.is_nfs ? "" : device_by(survey, way.address, to.interface);
  if (device.empty()) return;
  if (!host.is_root) {
    report.unknown.push_back("which card the data of " + printable(to.name) + " comes by (needs root)");
    return;
  }
  const IngressNic carried = read_and_look(host, device, used.name);
  way.carried_by = carried.card;
  if (carried.hung) {
    report.wrong(kNetworkArea,
                 "a read of " + device + ", of " + printable(to.name) +
                     ", has no answer, though its connection is live",
                 "a program that reads its volumes hangs until the kernel reconnects",
                 "sudo dmesg | tail; is its target overloaded, or does a switch drop full packets?");
  } else if (!carried.error.empty()) {
    report.unknown.push_back("which card the data of " + printable(to.name) + " comes by (" + carried.error +
                             ")");
  } else if (!carried.card.empty() && carried.card != used.name) {
    report_other_card(to, used.name, carried.card, report);
  }
}

// "target rose: enp1s0f1np1, 200 Gb/s, packets of 9000 bytes, its data comes by it"
std::string in_words(const Destination& to, const NetworkWay& way) {
  return printable(to.name) + ": " + way.interface + ", " + way.speed +
         (way.packet == 0 ? "" : ", packets of " + std::to_string(way.packet) + " bytes") +
         (way.carried_by == way.interface ? ", its data comes by it" : "");
}

void check_way(const Host& host, const Destination& to, const host::Survey& survey, const Route& route,
               NetworkWay way, Report& report) {
  const std::size_t before = report.findings.size();
  // Anew each time: the counters move.
  const std::vector<Nic> nics = list_nics(host);
  const Nic* used = find_nic(nics, route.interface);
  if (used == nullptr) {  // lo
    report.fine.push_back(printable(to.name) + ": this host itself");
    return;
  }
  way.interface = used->name;
  way.speed = speed_of(*used);
  way.megabits = used->megabits;
  way.mtu = used->mtu;
  way.gateway = route.gateway;
  check_card(to, nics, *used, way.address, report);
  if (!route.gateway.empty()) {
    report.note(kNetworkArea,
                printable(to.name) + " is reached through the router " + printable(route.gateway),
                "storage over a router is slower, and its port should be open to the storage network alone",
                "give this host an address in the target's network");
  }
  const std::size_t before_packets = report.findings.size();
  check_packets(host, to, nics, *used, way, report);
  if (report.findings.size() == before_packets) check_data(host, to, survey, *used, way, report);
  report.fine_since(before, in_words(to, way));
  report.network.push_back(std::move(way));
}

void check_destination(const Host& host, const Destination& to, const std::string& address,
                       const host::Survey& survey, Report& report) {
  const auto route = route_to(host, address, to.interface);
  if (!route && (route.error().kind == Errc::NotFound || route.error().kind == Errc::TimedOut)) {
    report.unknown.push_back("the way to " + printable(to.name) + " (ip: " + route.error().what + ")");
    return;
  }
  if (!route) {
    report.wrong(kNetworkArea,
                 "there is no way to " + printable(to.name) +
                     (to.name.starts_with(address) ? "" : " (" + printable(address) + ")") +
                     (to.interface.empty() ? "" : " through " + printable(to.interface)) + ": " +
                     route.error().what,
                 "it can't be reached", "ip address; ip route get " + printable(address));
    return;
  }
  NetworkWay way;
  way.target = printable(to.target);
  way.address = printable(address);
  check_way(host, to, survey, *route, std::move(way), report);
}

}  // namespace

void check_network(const Host& host, Report& report) {
  const host::Survey survey = host::survey(host.root);
  std::set<std::pair<std::string, std::string>> seen;  // a name may lead where an address leads
  for (const Destination& to : destinations_of(host, survey)) {
    const auto address = numeric_address(host, to);
    if (!address) {
      report.wrong(kNetworkArea, printable(to.name) + ": " + address.error().what,
                   "it is found again at every attempt", "getent hosts " + printable(to.address));
    } else if (seen.emplace(*address, to.interface).second) {
      check_destination(host, to, *address, survey, report);
    }
  }
}

}  // namespace spark::doctor
