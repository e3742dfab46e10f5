#include "doctor/network/links.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "doctor/network/ingress_nic.hpp"
#include "doctor/network/mtu.hpp"
#include "doctor/network/nics.hpp"
#include "fleet/link/judge.hpp"

namespace spark::doctor {
namespace {

constexpr char kArea[] = "link";
constexpr unsigned kEchoBytes = 100;  // bytes of a packet that any link carries
constexpr Bytes kMuch = 1'000'000;    // other traffic of a second is less

// "10.0.0.2:7789", "[fd00::1]:7789"
fleet::Endpoint endpoint_of(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  fleet::Endpoint endpoint{text.substr(0, colon), 0};
  std::erase_if(endpoint.address, [](char c) { return c == '[' || c == ']'; });
  if (colon < text.size())
    endpoint.port = leading_number<std::uint16_t>(std::string_view(text).substr(colon + 1)).value_or(0);
  return endpoint;
}

bool is_own(const std::vector<Nic>& nics, const std::string& address) {
  return std::ranges::any_of(nics, [&](const Nic& nic) {
    return std::ranges::any_of(nic.networks,
                               [&](const std::string& own) { return own.starts_with(address + "/"); });
  });
}

// A card that is faster than `used` and leads to one of the peer's addresses: that answers there.
std::optional<fleet::BetterWay> better_way(const Host& host, const std::vector<Nic>& nics, const Nic& used,
                                           const fleet::LinkEnd& peer, const std::string& address) {
  std::vector<Nic> faster;
  for (const Nic& nic : nics) {
    const bool is_faster = used.is_wireless ? !nic.is_wireless && nic.megabits != 0  // Wi-Fi tells no speed
                                            : used.megabits != 0 && nic.megabits > used.megabits;
    if (nic.is_up && is_faster) faster.push_back(nic);
  }
  std::ranges::stable_sort(faster, std::greater<>(), &Nic::megabits);
  std::vector<std::string> addresses{address};
  for (const Nic& card : peer.cards)
    if (card.megabits > used.megabits)
      addresses.insert(addresses.end(), card.networks.begin(), card.networks.end());
  for (const Nic& nic : faster)
    for (const std::string& there : addresses) {
      const bool is_near = std::ranges::any_of(
          nic.networks, [&](const std::string& network) { return is_in_network(there, network); });
      if (!is_near || is_own(nics, there)) continue;
      const auto echo = probe_path(host, there, nic.name, kEchoBytes);
      if (echo && echo->answers) return fleet::BetterWay{nic.name, nic.megabits, there};
    }
  return std::nullopt;
}

// Whether one more measurement could change the verdict.
bool is_doubtful(const fleet::LinkFacts& facts, const fleet::WayRate& way) {
  return !way.error && !fleet::is_fast_enough(facts, way) && !fleet::is_limited_by_cpu(way);
}

fleet::WayRate measure_once(const Host& host, const LinkMeter& meter, const fleet::Endpoint& peer,
                            fleet::Way way, fleet::LinkFacts& facts) {
  meter.progress(facts.peer + (way == fleet::Way::From ? ": receiving" : ": sending"));
  const auto before = read_nics(host.root);
  const fleet::WayRate rate = meter.measure(peer, way);
  if (way == fleet::Way::From && rate.bytes > kMuch) {
    const std::string card = card_that_grew(before, read_nics(host.root), facts.card.name, rate.bytes);
    facts.arrives_by = card == facts.card.name ? "" : card;
  }
  return rate;
}

// Both ways, and once more before an alarm: a moment's disturbance is no fault.
void measure(const Host& host, const LinkMeter& meter, const fleet::Endpoint& peer, fleet::LinkFacts& facts) {
  facts.from = measure_once(host, meter, peer, fleet::Way::From, facts);
  facts.to = measure_once(host, meter, peer, fleet::Way::To, facts);
  for (const fleet::Way way : {fleet::Way::From, fleet::Way::To}) {
    fleet::WayRate& first = way == fleet::Way::From ? facts.from : facts.to;
    if (!is_doubtful(facts, first)) continue;
    const fleet::WayRate second = measure_once(host, meter, peer, way, facts);
    if (!second.error && second.bytes_per_second >= first.bytes_per_second) first = second;
  }
}

void look_at_way(const Host& host, const fleet::Endpoint& peer, const fleet::LinkEnd& end,
                 fleet::LinkFacts& facts) {
  const auto nics = list_nics(host);
  const auto route = route_to(host, peer.address, "");
  const Nic* used = route ? find_nic(nics, route->interface) : nullptr;
  if (used == nullptr) return;
  facts.card = *used;
  facts.gateway = route->gateway;
  if (const Nic* half = other_half(nics, *used)) {
    facts.other_half = half->name;
    facts.is_other_half_used = half->is_up && !half->networks.empty();
  }
  if (const auto shown = host.run_tool({"ethtool", used->name}); shown && shown->exit_status == 0)
    facts.most_megabits = fastest_mode(shown->out);
  const auto agreed = host.negotiated_packet({peer.address, peer.port}, "");
  if (agreed) facts.packet = std::min(*agreed, used->mtu);
  const auto size = agreed ? probe_path(host, peer.address, "", facts.packet) : Result<PathSize>(PathSize{});
  if (size && size->answers) facts.works = size->works;
  facts.better = better_way(host, nics, *used, end, peer.address);
}

Result<json::array> peers_of(const Host& host) {
  if (host.settings().fleet.listen.empty())
    return fail(Errc::Invalid, "there is no fleet in the configuration", "docs/fleet.md says how to add one");
  const auto status = host.ask_daemon();
  if (!status) return status.take_error();
  const json::object* fleet = get_object(*status, "fleet");
  if (fleet == nullptr)
    return fail(Errc::Unavailable, "the daemon does not follow this configuration yet",
                "sudo systemctl reload spark-staged");
  if (const auto why = get_string(*fleet, "reason"))
    return fail(Errc::Unavailable, "the daemon serves no peers: " + printable(*why));
  const json::array* peers = get_array(*fleet, "peers");
  if (peers == nullptr || peers->empty())
    return fail(Errc::NotFound, "the daemon knows no peer yet", "spark-stage status");
  return *peers;
}

// `peer` is one of the daemon's status.
fleet::LinkFacts look_at_link(const Host& host, const LinkMeter& meter, const json::object& peer) {
  fleet::LinkFacts facts;
  facts.peer = get_shown(peer, "name");
  const fleet::Endpoint endpoint = endpoint_of(get_text(peer, "address"));
  facts.address = printable(endpoint.address.empty() ? "no address" : endpoint.address);
  if (!get_bool(peer, "answers").value_or(false)) {
    facts.error = Error{Errc::Unavailable, get_shown(peer, "reason"), ""};
    return facts;
  }
  meter.progress(facts.peer + ": looking at the way");
  const auto end = meter.look(endpoint);
  if (!end) {
    facts.error = end.error();
    return facts;
  }
  facts.peer_card = end->interface;
  facts.peer_megabits = end->megabits;
  look_at_way(host, endpoint, *end, facts);
  // Of a way that loses packets the rate tells nothing, and the transfer would only stall.
  if (facts.works != 0 && facts.works < facts.packet) return facts;
  measure(host, meter, endpoint, facts);
  return facts;
}

json::value rate_of(const fleet::WayRate& way) {
  return way.bytes_per_second > 0 ? json::value(std::llround(way.bytes_per_second)) : json::value();
}

json::object to_json(const fleet::LinkFacts& facts, const std::vector<fleet::LinkFinding>& findings) {
  json::array faults;
  for (const fleet::LinkFinding& finding : findings)
    if (finding.is_fault) faults.emplace_back(finding.kind);
  return {{"peer", facts.peer},
          {"address", or_null(facts.address)},
          {"interface", or_null(facts.card.name)},
          {"megabits", or_null(facts.card.megabits)},
          {"mtu", or_null(facts.card.mtu)},
          {"packet", or_null(facts.works)},
          {"peer_interface", or_null(facts.peer_card)},
          {"peer_megabits", or_null(facts.peer_megabits)},
          {"received_bytes_per_second", rate_of(facts.from)},
          {"sent_bytes_per_second", rate_of(facts.to)},
          {"own_busy", std::max(facts.from.own_busy, facts.to.own_busy)},
          {"peer_busy", std::max(facts.from.peer_busy, facts.to.peer_busy)},
          {"faults", std::move(faults)}};
}

void add(const fleet::LinkFacts& facts, Report& report) {
  const std::vector<fleet::LinkFinding> findings = fleet::judge(facts);
  for (const fleet::LinkFinding& found : findings)
    report.findings.push_back(
        {found.is_fault ? Level::Wrong : Level::Note, kArea, found.what, found.why, found.fix});
  report.links.push_back(to_json(facts, findings));
}

}  // namespace

Result<> test_links(const Host& host, const LinkMeter& meter, const std::vector<std::string>& names,
                    Report& report) {
  if (meter.error) return fail(*meter.error);
  const auto peers = peers_of(host);
  if (!peers) return peers.take_error();
  std::vector<std::string> known;
  for (const json::value& peer : *peers) known.push_back(get_text(peer.as_object(), "name"));
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      return fail(Errc::NotFound, "there is no peer " + printable(name),
                  "the peers are " + join(known, ", "));
  for (const json::value& peer : *peers)
    if (names.empty() || std::ranges::find(names, get_text(peer.as_object(), "name")) != names.end())
      add(look_at_link(host, meter, peer.as_object()), report);
  return {};
}

unsigned fastest_mode(const std::string& ethtool_output) {
  unsigned fastest = 0;
  bool is_supported = false;
  for (const std::string& line : split(ethtool_output, '\n')) {
    if (line.find(':') != std::string::npos)
      is_supported = line.find("Supported link modes:") != std::string::npos;
    if (!is_supported) continue;
    for (const std::string& word : split(line, ' ')) {
      unsigned megabits = 0;
      const char* end = word.data() + word.size();
      const auto [after, error] = std::from_chars(word.data(), end, megabits);
      if (error == std::errc() && std::string_view(after, end).starts_with("base"))
        fastest = std::max(fastest, megabits);
    }
  }
  return fastest;
}

}  // namespace spark::doctor
