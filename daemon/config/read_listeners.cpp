// Sections with listening addresses: /metrics and the fleet.
#include <set>

#include "base/text.hpp"
#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

// A percentage of the link, or a rate.
Result<Amount> parse_upload(std::string_view text) {
  auto amount = text.ends_with('%') ? parse_amount(text) : Result<Amount>(Amount{});
  if (!text.ends_with('%')) {
    if (auto clear = check_has_unit(text); !clear) return clear.take_error();
    const auto rate = parse_rate(text);
    if (!rate) return rate.take_error();
    amount->bytes = *rate;
  }
  if (amount && *amount == Amount{})
    return fail(Errc::Invalid, quote(text) + " would serve no peer", "write a part of the link or a rate");
  return amount;
}

void read_peers(FleetSettings& fleet, const Node& node, std::uint16_t port, Problems& problems) {
  check_names(node, "fleet.peers", "peer", problems);
  std::set<std::string> seen;
  Section section(node, "fleet.peers", problems);
  for (const Member& member : node.members) {
    for (const std::string& text : section.texts(member.key)) {
      auto address = section.accept(member.key, parse_portal(text, port));
      if (!address) continue;
      if (!seen.insert(to_string(*address)).second)
        section.problem(member.key, "has the address " + quote(text) + ", as another peer has");
      fleet.peers[member.key].push_back(std::move(*address));
    }
    if (!fleet.peers.contains(member.key)) section.missing(member.key, "write a list of its addresses");
  }
}

}  // namespace

FleetSettings read_fleet(const Node& node, Problems& problems) {
  Section section(node, "fleet", problems);
  FleetSettings fleet;
  for (const std::string& text : section.words("listen"))
    if (auto portal = section.accept("listen", parse_listen(text)))
      fleet.listen.push_back(std::move(*portal));
  if (!section.has("listen") || section.is_empty_list("listen"))
    section.missing("listen", "write this host's address on the fabric, and a port");
  fleet.key_file = section.checked<std::filesystem::path>("key_file", parse_absolute_path).value_or("");
  if (!section.has("key_file")) section.missing("key_file", "`spark-stage fleet key` prints a new key");
  fleet.upload = section.checked<Amount>("upload", parse_upload).value_or(fleet.upload);
  const std::uint16_t port = fleet.listen.empty() ? 1 : fleet.listen.front().port;
  if (const auto name = section.text("dns")) fleet.dns = section.accept("dns", parse_portal(*name, port));
  if (const Node* peers = section.map("peers")) {
    read_peers(fleet, *peers, port, problems);
  } else if (!section.has("dns")) {
    section.missing(
        "peers",
        "write the other hosts: peers: {spark2: [10.0.0.2]}, or a name that leads to all: dns: sparks.lan");
  }
  return fleet;
}

MetricsSettings read_metrics(const Node& node, Problems& problems) {
  Section section(node, "metrics", problems);
  MetricsSettings metrics;
  const auto text = section.text("listen");
  if (text && *text != "off") metrics.listen = section.accept("listen", parse_listen(*text));
  return metrics;
}

}  // namespace spark::config
