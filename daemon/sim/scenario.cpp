#include "daemon/sim/scenario.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"
#include "daemon/config/yaml.hpp"

namespace spark::sim {
namespace {

using config::Node;
using config::Problems;
using config::Section;

constexpr std::size_t kMaxFileBytes = 1 << 20;

using Known = std::vector<std::string>;

// `kind`: "target" or "volume".
Known names_of(const std::string& kind, const config::Config& config) {
  Known names;
  if (kind == "target") {
    for (const auto& [name, target] : config.targets) names.push_back(name);
  } else {
    for (const config::Volume& volume : config.volumes) names.push_back(volume.name);
  }
  return names;
}

std::string unknown_name(const std::string& kind, const std::string& name, const Known& known) {
  return "there is no " + kind + " " + config::quote(name) + " in this file" +
         config::did_you_mean(name, known);
}

// The text, or empty for the word `none`.
std::optional<std::string> text_or_none(Section& section, std::string_view key) {
  auto text = section.text(key);
  if (text == "none") text->clear();
  return text;
}

TargetChange read_target(const std::string& name, Section& section, const config::Config& config) {
  TargetChange change;
  change.target = name;
  change.state = section.choice<Reach>(
      "state", {{"up", Reach::Up}, {"down", Reach::Down}, {"refusing", Reach::Refusing}});
  change.removes_controllers = section.choice<bool>("controllers", {{"removed", true}}).value_or(false);
  const auto address = section.text("address");
  if (!address) return change;
  change.address = *address;
  const auto target = config.targets.find(change.target);
  if (target == config.targets.end()) return change;
  Known known;
  for (const nvmetcp::Portal& portal : target->second.portals) known.push_back(portal.address);
  if (std::ranges::find(known, *address) == known.end())
    section.problem("address", config::quote(*address) + " is no address of target " + config::quote(name));
  return change;
}

void read_mount(VolumeChange& change, Section& section) {
  const auto word = section.choice<std::string>(
      "mount", {{"works", "works"}, {"hangs", "hangs"}, {"gone", "gone"}, {"shut-down", "shut-down"}});
  if (word == "works") change.mounts = Calls::Work;
  if (word == "hangs") change.mounts = Calls::Hang;
  if (word == "gone") change.mount_end = MountEnd::Gone;
  if (word == "shut-down") change.mount_end = MountEnd::ShutDown;
}

VolumeChange read_volume(const std::string& name, Section& section) {
  VolumeChange change;
  change.volume = name;
  change.offered = section.boolean("offered");
  change.type = section.choice<std::string>("type", {{"ext4", "ext4"}, {"xfs", "xfs"}, {"none", ""}});
  change.uuid = section.checked<std::string>("uuid", config::parse_uuid);
  change.size = section.checked<Bytes>("size", parse_bytes);
  change.mmp = section.boolean("mmp");
  change.reservations = section.boolean("reservations");
  change.writer = text_or_none(section, "writer");
  change.users = text_or_none(section, "users");
  change.latency = section.checked<VolumeChange::Latency>(
      "latency", [](std::string_view text) { return parse_optional_duration(text, "never"); });
  change.connects = section.choice<Calls>("connect", {{"works", Calls::Work}, {"hangs", Calls::Hang}});
  read_mount(change, section);
  return change;
}

WorldChange read_change(const std::string& kind, const std::string& name, Section& section,
                        const config::Config& config) {
  if (kind == "target") return read_target(name, section, config);
  return read_volume(name, section);
}

// `targets` and `volumes`: the initial state.
void read_beginning(Scenario& scenario, Section& section, const config::Config& config, Problems& problems) {
  for (const std::string kind : {"target", "volume"}) {
    const Known known = names_of(kind, config);
    const std::string path = "simulation." + kind + "s";
    const Node* node = section.map(kind + "s");
    if (node == nullptr) continue;
    for (const config::Member& member : node->members) {
      if (std::ranges::find(known, member.key) == known.end())
        problems.add(member.at, path + ": " + unknown_name(kind, member.key, known));
      Section keys(member.value, path + "." + printable(member.key), problems);
      scenario.beginning.push_back(read_change(kind, member.key, keys, config));
    }
  }
}

// "target rose: state down"
std::string sentence_of(const Node& node) {
  std::string subject;
  std::vector<std::string> rest;
  for (const config::Member& member : node.members) {
    const std::string words = printable(member.key + " " + member.value.text);
    if (member.key == "target" || member.key == "volume") {
      subject = words;
    } else if (member.key != "after") {
      rest.push_back(words);
    }
  }
  return subject + ": " + join(rest, ", ");
}

std::optional<Duration> read_after(Section& section) {
  if (!section.has("after"))
    section.missing("after", "write a time since the event before, or 'signal' to wait for SIGUSR1");
  const auto text = section.text("after");
  if (!text || *text == "signal") return std::nullopt;
  return section.accept("after", parse_duration(*text));
}

Event read_event(const Node& node, const std::string& path, const config::Config& config,
                 Problems& problems) {
  Section section(node, path, problems);
  Event event;
  event.after = read_after(section);
  event.sentence = sentence_of(node);
  const auto target = section.text("target"), volume = section.text("volume");
  if (target.has_value() == volume.has_value())
    section.problem("target", "name either a 'target' or a 'volume'");
  const std::string kind = target ? "target" : "volume";
  const std::string name = target.value_or(volume.value_or(""));
  const Known known = names_of(kind, config);
  if ((target || volume) && std::ranges::find(known, name) == known.end())
    section.problem(kind, unknown_name(kind, name, known));
  event.change = read_change(kind, name, section, config);
  return event;
}

Scenario read_scenario(const Node& node, const config::Config& config, Problems& problems) {
  Scenario scenario;
  Section section(node, "simulation", problems);
  scenario.pace = section.checked<Duration>("pace", parse_duration).value_or(scenario.pace);
  scenario.repeats = section.boolean("repeat").value_or(false);
  read_beginning(scenario, section, config, problems);
  const Node* events = section.map("events");
  if (events == nullptr) return scenario;
  if (events->kind != Node::Kind::List)
    section.problem("events", "has to be a list, as in [{after: 5s, target: rose, state: down}]");
  for (std::size_t number = 0; number < events->items.size(); ++number) {
    const std::string path = "simulation.events." + std::to_string(number + 1);
    scenario.events.push_back(read_event(events->items[number], path, config, problems));
  }
  return scenario;
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& yaml, const config::Config& config) {
  Problems problems;
  Scenario scenario;
  if (const auto root = config::read_yaml(yaml, problems)) {
    const auto section = std::ranges::find(root->members, "simulation", &config::Member::key);
    if (section != root->members.end()) scenario = read_scenario(section->value, config, problems);
  }
  if (!problems.none()) return fail(Errc::Invalid, problems.report(config.file.string()));
  return scenario;
}

Result<Scenario> load_scenario(const config::Config& config) {
  const auto yaml = read_file(config.file, kMaxFileBytes);
  if (!yaml) return fail_with(yaml.error(), "reading the simulation");
  return parse_scenario(*yaml, config);
}

}  // namespace spark::sim
