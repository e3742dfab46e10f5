#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/mount_points.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

constexpr std::int64_t kMostKept = 1'000'000'000;
constexpr std::int64_t kMostNodes = 10'000;
constexpr char kMarker[] = "marker:";

struct Rule {
  Complete complete = Complete::OnRequest;
  std::string marker;
};

Result<Rule> parse_rule(std::string_view text) {
  for (const auto rule : {Complete::Rename, Complete::Dcp, Complete::HuggingFace, Complete::DeepSpeed})
    if (text == to_string(rule)) return Rule{rule, ""};
  if (!text.starts_with(kMarker)) {
    return fail(Errc::Invalid,
                "'" + printable(text) + "' is none of rename, dcp, hf, deepspeed and marker:NAME",
                "leave it out to send only on request");
  }
  Rule rule{Complete::Marker, std::string(text.substr(sizeof kMarker - 1))};
  if (rule.marker.empty() || rule.marker == "." || rule.marker == ".." ||
      rule.marker.find('/') != std::string::npos) {
    return fail(Errc::Invalid, "'" + printable(text) + "' does not name a file of the checkpoint",
                "for example: marker:DONE");
  }
  return rule;
}

void check_volume(const Output& output, Section& section, const Config& so_far) {
  if (output.volume.empty()) return;
  const Volume* volume = find_volume(so_far, output.volume);
  if (volume == nullptr)
    return section.no_such("volume", "volume", output.volume, so_far.volumes, &Volume::name);
  if (volume->access == Access::Exclusive) return;
  section.problem("volume", "volume '" + output.volume +
                                "' is read-only on this host; an output needs one with `access: exclusive`");
}

// Each host has only its part, so a rule based on a file that names all others can't work.
void check_nodes(const Output& output, Section& section, const Config& so_far) {
  if (output.nodes == 0) return;
  const bool looks_for_files = output.complete == Complete::Dcp || output.complete == Complete::HuggingFace ||
                               output.complete == Complete::DeepSpeed;
  const Volume* volume = find_volume(so_far, output.volume);
  if (looks_for_files) {
    section.problem(
        "nodes",
        "needs `complete: rename`, `complete: marker:NAME` or none: with the other rules, only one "
        "host has the file that marks a complete checkpoint");
  } else if (volume != nullptr && !volume->nfs) {
    section.problem("nodes", "is for an NFS volume, which several hosts may write; volume '" + output.volume +
                                 "' is none");
  }
}

void check_path(const Output& output, Section& section, const MountPoints& mount_points,
                const std::filesystem::path& cache) {
  if (output.path.empty()) return;
  if (const std::string* volume = mount_points.above(output.path)) {
    section.problem("path",
                    "is on volume '" + *volume +
                        "'; jobs write to the local drive, and the daemon sends complete checkpoints");
  }
  if (is_within(output.path, cache) || is_within(cache, output.path))
    section.problem("path", "overlaps the cache, " + cache.string());
}

Output read_output(const Member& member, const Config& so_far, const MountPoints& mount_points,
                   Problems& problems) {
  Section section(member.value, "outputs." + member.key, problems);
  Output output;
  output.name = member.key;
  output.path = section.checked<std::filesystem::path>("path", parse_absolute_path).value_or("");
  output.volume = section.text("volume").value_or("");
  output.to = section.checked<std::string>("to", parse_relative_path).value_or(member.key);
  if (const auto rule = section.checked<Rule>("complete", parse_rule)) {
    output.complete = rule->complete;
    output.marker = rule->marker;
  }
  const auto count = [&](const char* key) {
    return static_cast<std::uint32_t>(section.integer(key, 1, kMostKept).value_or(0));
  };
  output.keep = count("keep");
  output.keep_local = count("keep_local");
  output.keep_every = count("keep_every");
  output.namespaces = read_namespaces(section, "if no pod is to write there");
  output.nodes = static_cast<std::uint32_t>(section.integer("nodes", 2, kMostNodes).value_or(0));
  if (!section.has("path"))
    section.missing("path", "write the folder that the job writes its checkpoints to");
  if (!section.has("volume")) section.missing("volume", "write the volume that they are sent to");
  check_volume(output, section, so_far);
  check_nodes(output, section, so_far);
  check_path(output, section, mount_points, so_far.cache.path);
  return output;
}

}  // namespace

std::map<std::string, Output> read_outputs(const Node& node, const Config& so_far, Problems& problems) {
  check_names(node, "outputs", "output", problems);
  std::map<std::string, Output> outputs;
  const MountPoints mount_points(so_far.volumes);
  for (const Member& member : node.members) {
    Output output = read_output(member, so_far, mount_points, problems);
    for (const auto& [name, other] : outputs) {
      const bool share_path =
          !output.path.empty() && (is_within(output.path, other.path) || is_within(other.path, output.path));
      const bool share_place = output.volume == other.volume && output.to == other.to;
      if (!share_path && !share_place) continue;
      problems.add(member.at, "outputs." + member.key + ": its " + (share_path ? "folder" : "destination") +
                                  " is that of output '" + name + "' as well; give each its own");
    }
    outputs[member.key] = std::move(output);
  }
  return outputs;
}

}  // namespace spark::config
