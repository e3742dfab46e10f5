#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"
#include "migration/words.hpp"
#include "nvmetcp/types.hpp"

namespace spark::cli {
namespace {

std::string portal_of(const json::object& object) {
  return to_string(nvmetcp::Portal{get_text(object, "address"),
                                   static_cast<std::uint16_t>(get_int(object, "port").value_or(0))});
}

// The I/O subsystems that can be used over TCP, with the portals each is offered at.
std::map<std::string, std::set<std::string>> usable_subsystems(const json::object& discovery) {
  std::map<std::string, std::set<std::string>> portals;
  for (const json::object& entry : objects_in(discovery, "entries")) {
    if (get_shown(entry, "kind") != "io" || get_shown(entry, "transport") != "tcp") continue;
    portals[get_shown(entry, "nqn")].insert(portal_of(entry));
  }
  return portals;
}

std::string volume_yaml(const std::string& nqn, const std::set<std::string>& portals,
                        const std::string& asked, std::set<std::string>& taken) {
  const std::string name = host::name_for(nqn, taken);
  std::string yaml = "  " + config::yaml_word(name) +
                     ":\n    target: target\n    subsystem: " + config::yaml_word(nqn) + "\n";
  if (!portals.contains(asked)) {
    const std::vector<std::string> others(portals.begin(), portals.end());
    yaml += "    # the target names " + join(others, ", ") + " for it, not the address that was asked\n";
  }
  return yaml + "    namespace: 1\n    mount: /mnt/" + name + "\n" +
         "    access: read-only   # or exclusive: this host alone mounts it, and writes\n";
}

}  // namespace

void print_discovery(std::ostream& out, const Terminal& terminal, const json::object& discovery) {
  const json::object* target = get_object(discovery, "target");
  const std::string where = target != nullptr ? portal_of(*target) : "the target";
  const json::object* host = get_object(discovery, "host");
  const std::string who = host != nullptr ? get_shown(*host, "nqn") : "this host";
  const auto line = [&](const std::string& words) { return sentence(words, terminal.columns, terminal.out); };
  const auto entries = objects_in(discovery, "entries");
  if (entries.empty()) {
    out << line(where + " answers, and offers nothing to this host.\nAllow on the target: " + who);
  } else {
    constexpr std::size_t kSubsystemColumn = 3;
    Table table({"ADDRESS", "TRANSPORT", "KIND", "SUBSYSTEM"}, {kSubsystemColumn});
    for (const json::object& entry : entries) {
      table.add({{portal_of(entry)},
                 {get_shown(entry, "transport")},
                 {get_shown(entry, "kind")},
                 {get_shown(entry, "nqn")}});
    }
    table.print(out, terminal);
    out << line("\nOffered to " + who);
  }
  for (const std::string& why : get_printable(discovery, "ignored")) out << line("ignored: " + why);
}

std::string discovery_as_config(const json::object& discovery, WallTime now) {
  static const json::object nothing;
  const json::object* target = get_object(discovery, "target");
  const json::object* host = get_object(discovery, "host");
  if (target == nullptr) target = &nothing;
  if (host == nullptr) host = &nothing;
  std::string yaml =
      "# Made by `spark-stage discover " + get_shown(*target, "address") + " --yaml` at " + rfc3339(now) +
      ".\n# Put it into /etc/spark-stage/spark-stage.yaml, then: spark-stage config check\n"
      "# The target knows this host as " +
      get_shown(*host, "nqn") + "\nversion: 1\ntargets:\n  target:   # any name\n    address: " +
      config::yaml_word(get_shown(*target, "address")) +
      "\n    port: " + std::to_string(get_int(*target, "port").value_or(4420)) + "\n";
  const auto subsystems = usable_subsystems(discovery);
  if (subsystems.empty()) {
    return yaml +
           "# It offers no subsystem to this host over TCP: allow the host NQN above on the target.\n"
           "volumes: {}\n";
  }
  yaml += "volumes:\n";
  std::set<std::string> taken;
  for (const auto& [nqn, portals] : subsystems) yaml += volume_yaml(nqn, portals, portal_of(*target), taken);
  return yaml + "# datasets:\n#   imagenet: {volume: " + *taken.begin() + ", path: imagenet}\n";
}

}  // namespace spark::cli
