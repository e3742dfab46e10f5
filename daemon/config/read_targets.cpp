#include <set>

#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

constexpr seconds kHour{3600};
constexpr seconds kLongest{24 * 3600};

void read_portals(Target& target, Section& section) {
  const auto port = static_cast<std::uint16_t>(section.integer("port", 1, 65535).value_or(4420));
  const auto address = section.checked<std::string>("address", parse_address);
  const bool listed = section.has("portals");
  std::set<std::string> known;
  for (const std::string& text : section.texts("portals")) {
    auto portal = section.accept("portals", parse_portal(text, port));
    if (!portal) continue;
    if (known.insert(to_string(*portal)).second) {
      target.portals.push_back(std::move(*portal));
    } else {
      section.problem("portals", to_string(*portal) + " is there twice");
    }
  }
  if (address) target.portals.push_back({*address, port});
  if (listed && section.has("address")) {
    section.problem("portals", "stands beside 'address'; write one of the two");
  } else if (!listed && !section.has("address")) {
    section.missing("address", "write the target's IP address or host name, or several as 'portals: [A, B]'");
  } else if (listed && target.portals.empty()) {
    section.problem("portals", "names no portal that can be used");
  }
}

// The kernel accepts combinations that can't work: these are SPDK's rules for the same three times.
void read_timeouts(Target& target, Section& section) {
  target.keep_alive = section.duration("keep_alive", seconds(1), kHour).value_or(target.keep_alive);
  target.reconnect_delay =
      section.duration("reconnect_delay", seconds(1), kHour).value_or(target.reconnect_delay);
  target.controller_loss = section.duration_or("controller_loss", "never", seconds(1), kLongest);
  target.fast_fail = section.duration_or("fast_fail", "off", seconds(1), kLongest);
  const std::string delay = std::to_string(target.reconnect_delay.count()) + "s";
  if (target.controller_loss && *target.controller_loss < target.reconnect_delay) {
    section.problem("controller_loss",
                    "ends before the first attempt to reconnect; reconnect_delay is " + delay);
  }
  if (target.fast_fail && *target.fast_fail < target.reconnect_delay) {
    section.problem("fast_fail", "ends before the first attempt to reconnect; reconnect_delay is " + delay);
  }
  if (target.fast_fail && target.controller_loss && *target.fast_fail > *target.controller_loss) {
    section.problem("fast_fail", "would never pass: controller_loss, " +
                                     std::to_string(target.controller_loss->count()) + "s, is over before");
  }
}

void read_digests(Target& target, Section& section, Problems& problems) {
  const Node* node = section.map("digests");
  if (node == nullptr) return;
  Section digests(*node, section.path_of("digests"), problems);
  target.header_digest = digests.boolean("header").value_or(false);
  target.data_digest = digests.boolean("data").value_or(false);
}

void read_keys(Target& target, Section& section, Problems& problems) {
  using Path = std::filesystem::path;
  if (const Node* node = section.map("auth")) {
    Section auth(*node, section.path_of("auth"), problems);
    target.auth.host_key_file = auth.checked<Path>("host_key_file", parse_absolute_path).value_or(Path());
    target.auth.controller_key_file =
        auth.checked<Path>("controller_key_file", parse_absolute_path).value_or(Path());
    if (!auth.has("host_key_file")) {
      auth.missing("host_key_file", "the host proves itself first, the controller in turn");
    }
  }
  if (const Node* node = section.map("tls")) {
    Section tls(*node, section.path_of("tls"), problems);
    target.tls_psk_file = tls.checked<Path>("psk_file", parse_absolute_path).value_or(Path());
    if (!tls.has("psk_file")) tls.missing("psk_file", "write the file that holds the pre-shared key");
  }
}

Target read_target(const Member& member, Problems& problems) {
  Section section(member.value, "targets." + member.key, problems);
  Target target;
  target.name = member.key;
  read_portals(target, section);
  target.interface = section.checked<std::string>("interface", parse_interface).value_or("");
  target.io_queues = section.count_or_auto("io_queues", 256).value_or(0);
  read_timeouts(target, section);
  const auto policy = [](const char* word) { return std::pair(std::string(word), std::string(word)); };
  target.io_policy =
      section
          .choice<std::string>("io_policy",
                               {{"kernel", ""}, policy("numa"), policy("round-robin"), policy("queue-depth")})
          .value_or("");
  read_digests(target, section, problems);
  read_keys(target, section, problems);
  return target;
}

}  // namespace

std::map<std::string, Target> read_targets(const Node& node, Problems& problems) {
  check_names(node, "targets", "target", problems);
  std::map<std::string, Target> targets;
  for (const Member& member : node.members) targets[member.key] = read_target(member, problems);
  return targets;
}

}  // namespace spark::config
