#include <set>

#include "daemon/config/connect_options.hpp"
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

// Reads each option; an absent key keeps the default.
struct OptionReader {
  Section& from;
  Problems& problems;

  void operator()(const char* key, bool& to) const { to = from.boolean(key).value_or(to); }
  void operator()(const char* key, unsigned& to) const { to = from.count_or_auto(key, 256).value_or(to); }
  void operator()(const char* key, seconds& to) const {
    to = from.duration(key, seconds(1), kHour).value_or(to);
  }
  void operator()(const char* key, std::optional<seconds>& to, const char* none) const {
    to = from.duration_or(key, none, seconds(1), kLongest);
  }
  // `missing`: a hint if the key is required.
  template <class T>
  void operator()(const char* key, std::string& to, Result<T> (*parse)(std::string_view),
                  const char* missing = nullptr) const {
    to = from.checked<T>(key, parse).value_or(T());
    if (missing != nullptr && !from.has(key)) from.missing(key, missing);
  }
  // The first word is the default, which the option stores as an empty string.
  void operator()(const char* key, std::string& to, std::initializer_list<const char*> words) const {
    std::vector<std::pair<std::string, std::string>> known;
    for (const char* word : words) known.emplace_back(word, known.empty() ? "" : word);
    to = from.choice<std::string>(key, known).value_or("");
  }
  template <class Options>
  void section(const char* key, const Options& options) const {
    const Node* node = from.map(key);
    if (node == nullptr) return;
    Section inner(*node, from.path_of(key), problems);
    options(OptionReader{inner, problems});
  }
};

// The kernel accepts combinations that can't work: these are SPDK's rules for the same three timeouts.
void check_timeouts(const nvmetcp::ConnectOptions& options, Section& section) {
  const auto delay = options.reconnect_delay;
  const auto& loss = options.controller_loss;
  const auto& fast = options.fast_fail;
  const std::string too_early =
      "ends before the first attempt to reconnect; reconnect_delay is " + std::to_string(delay.count()) + "s";
  if (loss && *loss < delay) section.problem("controller_loss", too_early);
  if (fast && *fast < delay) section.problem("fast_fail", too_early);
  if (fast && loss && *fast > *loss) {
    section.problem("fast_fail", "would never pass: controller_loss, " + std::to_string(loss->count()) +
                                     "s, is over before");
  }
}

Target read_target(const Member& member, Problems& problems) {
  Section section(member.value, "targets." + member.key, problems);
  Target target;
  target.name = member.key;
  read_portals(target, section);
  for_each_option(target.options, OptionReader{section, problems});
  check_timeouts(target.options, section);
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
