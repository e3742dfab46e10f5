#include "cli/verbs/fleet_here.hpp"

#include <algorithm>
#include <iterator>

#include "base/network/addresses.hpp"
#include "base/text.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"
#include "fleet/transport/name_service.hpp"

namespace spark::cli {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

// In plain form, as those of the interfaces are.
std::vector<std::string> addresses_of(const std::string& host) {
  return addresses_behind(host).value_or(std::vector<std::string>());
}

// The one that leads to this host itself; empty: none does, as far as is known. A name may lead to 127.0.1.1,
// which no interface has. Another address of 127.0.0.0/8 is that of a second daemon in a trial.
std::string own_address_among(const std::string& host) {
  const bool is_name = !fleet::is_address(host);
  for (const std::string& one : addresses_of(host))
    if (!interface_of(one).empty() || is_any_address(one) || (is_name && is_loopback(one))) return one;
  return "";
}

// `known`: the section's, and those given before. One of them has its name and its port there.
Result<FleetHere::Peer> parse_peer(const std::string& text, const std::vector<FleetHere::Peer>& known) {
  const std::size_t equals = text.find('=');
  const bool has_name = equals != std::string::npos;
  auto portal = config::parse_portal(has_name ? text.substr(equals + 1) : text, 0);
  if (!portal) return fail_with(portal.error(), "peer " + printable(text));
  std::string name = has_name ? text.substr(0, equals) : portal->address;
  std::ranges::replace(name, ':', '-');  // of an IPv6 address
  if (!config::is_name(name))
    return fail(Errc::Invalid, "peer " + printable(text) + ": " + printable(name) + " can't be its name",
                "write NAME=ADDRESS");
  const FleetHere::Peer* there = find_peer(known, *portal, name);
  if (there != nullptr && has_name && there->name != name)
    return fail(
        Errc::Refused,
        "peer " + printable(text) + ": " + to_string(there->address) + " is peer " + there->name + " already",
        "leave the name out, or change it in the configuration");
  if (portal->port == 0) portal->port = kFleetPort;
  const FleetHere::Peer peer = there != nullptr ? *there : FleetHere::Peer{name, *portal};
  const std::string own = own_address_among(peer.address.address);
  if (own.empty()) return peer;
  const std::string led = own == peer.address.address ? "" : ": its name leads to " + own;
  return fail(Errc::Invalid, "peer " + printable(text) + " is this host" + led,
              "name the other hosts, by an address on the network between them");
}

// A trial with all daemons on one computer is the only use of an address that no other host reaches.
Result<> check_listen(const std::string& address, const std::vector<FleetHere::Peer>& peers) {
  const std::string what = "listening on " + printable(address) + ": ";
  const std::string hint = "`ip -br address` lists them; give one on the network to the other hosts";
  if (is_any_address(address))
    return fail(Errc::Invalid, what + "the others need one IP address of this host", hint);
  const bool is_trial = !peers.empty() && std::ranges::all_of(peers, [](const FleetHere::Peer& peer) {
    return is_loopback(peer.address.address);
  });
  if (is_loopback(address) && !is_trial) return fail(Errc::Invalid, what + "only this host reaches it", hint);
  if (!interface_of(address).empty()) return {};
  return fail(Errc::Invalid, what + "it is no IP address of this host", hint);
}

// The address of the card that leads to the first peer, unless one is given or in the configuration.
Result<nvmetcp::Portal> address_to_listen(const JoinOptions& options, const config::FleetSettings& there,
                                          const std::vector<FleetHere::Peer>& peers) {
  if (options.listen.empty() && !there.listen.empty()) return there.listen.front();
  nvmetcp::Portal listen{"", kFleetPort};
  if (!options.listen.empty()) {
    const auto portal = config::parse_portal(options.listen, kFleetPort);
    if (!portal || !fleet::is_address(portal->address))
      return fail(Errc::Invalid, "--listen " + printable(options.listen) + " is no IP address");
    listen = *portal;
    if (const auto plain = addresses_of(listen.address); !plain.empty()) listen.address = plain.front();
  } else if (peers.empty()) {
    return fail(
        Errc::Invalid, "which address of this host do the others reach?",
        "name another host, whose route tells: `spark-stage fleet join 10.0.0.2`, or give --listen ADDRESS");
  } else {
    const nvmetcp::Portal& first = peers.front().address;
    const auto own = address_towards(first.address);
    if (!own) return own.take_error();
    listen.address = *own;
  }
  if (auto right = check_listen(listen.address, peers); !right) return right.take_error();
  return listen;
}

}  // namespace

Result<FleetHere> wanted_fleet(const std::filesystem::path& file, const JoinOptions& options,
                               const config::FleetSettings& there) {
  FleetHere fleet;
  std::vector<FleetHere::Peer> known = peers_of(there);
  if (options.peers.empty())
    std::ranges::copy_if(known, std::back_inserter(fleet.peers), [](const FleetHere::Peer& peer) {
      return own_address_among(peer.address.address).empty();
    });
  for (const std::string& text : options.peers) {
    auto peer = parse_peer(text, known);
    if (!peer) return peer.take_error();
    if (find_peer(fleet.peers, peer->address) != nullptr) continue;  // given twice
    known.push_back(*peer);
    fleet.peers.push_back(std::move(*peer));
  }
  const auto listen = address_to_listen(options, there, fleet.peers);
  if (!listen) return listen.take_error();
  fleet.listen = *listen;
  if (options.listen.empty() && !there.listen.empty())
    fleet.other_listens.assign(std::next(there.listen.begin()), there.listen.end());
  fleet.key_file = there.listen.empty() ? file.parent_path() / "keys/fleet" : there.key_file;
  return fleet;
}

nvmetcp::Portal reached_from(const FleetHere& fleet, const nvmetcp::Portal& peer) {
  const auto own = address_towards(peer.address);
  std::vector<nvmetcp::Portal> all = fleet.other_listens;
  all.insert(all.begin(), fleet.listen);
  for (const nvmetcp::Portal& one : all)
    if (own && (one.address == *own || is_any_address(one.address))) return {*own, one.port};
  return {is_any_address(fleet.listen.address) ? "ADDRESS" : fleet.listen.address, fleet.listen.port};
}

}  // namespace spark::cli
