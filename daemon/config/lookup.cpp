// Finds names that people type in the config in force.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/mount_points.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::config {
namespace {

std::vector<std::string> volume_names(const Config& config) {
  std::vector<std::string> names;
  for (const Volume& volume : config.volumes) names.push_back(volume.name);
  return names;
}

std::vector<std::string> dataset_names(const Config& config) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : config.datasets) names.push_back(name);
  return names;
}

tl::unexpected<Error> not_there(const std::string& what, std::string_view name,
                                const std::vector<std::string>& known) {
  const std::string list = known.empty() ? "the config names none" : "known: " + join(known, ", ");
  return fail(Errc::NotFound, "there is no " + what + " " + quote(name) + did_you_mean(name, known), list);
}

Result<Dataset> folder_of_volume(const Config& config, const std::string& volume, std::string_view path) {
  if (find_volume(config, volume) == nullptr) return not_there("volume", volume, volume_names(config));
  const auto below = parse_relative_path(path);
  if (!below) return fail_with(below.error(), "dataset " + quote(volume + ":" + std::string(path)));
  Dataset dataset;
  dataset.name = volume + ":" + *below;
  dataset.volume = volume;
  dataset.path = *below;
  return dataset;
}

}  // namespace

Result<Dataset> find_dataset(const Config& config, const std::string& name) {
  const std::size_t colon = name.find(':');
  if (colon != std::string::npos) {
    return folder_of_volume(config, name.substr(0, colon), std::string_view(name).substr(colon + 1));
  }
  const auto at = config.datasets.find(name);
  if (at != config.datasets.end()) return at->second;
  return not_there("dataset", name, dataset_names(config));
}

const Volume* find_volume(const Config& config, const std::string& name) {
  const auto at = std::find_if(config.volumes.begin(), config.volumes.end(),
                               [&](const Volume& volume) { return volume.name == name; });
  return at == config.volumes.end() ? nullptr : &*at;
}

std::string environment_name(const std::string& dataset) {
  std::string variable = "SPARK_STAGE_";
  for (const char c : dataset) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    variable += lower ? static_cast<char>(c - 'a' + 'A') : kept ? c : '_';
  }
  return variable;
}

Result<Output> find_output(const Config& config, const std::string& name) {
  if (const auto found = config.outputs.find(name); found != config.outputs.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, unused] : config.outputs) names.push_back(known);
  return not_there("output", name, names);
}

Result<> check_cache_path(const Config& config, const std::filesystem::path& path) {
  std::filesystem::path plain = path.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  const auto refused = [&](const std::string& what) {
    return fail(Errc::Invalid, "the cache can't be in " + printable(path.native()) + ": " + what,
                "name a folder of this host's own drive that nothing else uses");
  };
  const auto overlaps = [&](const std::filesystem::path& other) {
    return is_within(plain, other) || is_within(other, plain);
  };
  const MountPoints mount_points(config.volumes);
  if (const std::string* volume = mount_points.above(plain))
    return refused("it is on volume '" + *volume + "'");
  for (const auto& [name, dataset] : config.datasets)
    if (dataset.path.starts_with('/') && overlaps(dataset.path))
      return refused("it overlaps the path of dataset '" + name + "'");
  for (const auto& [name, output] : config.outputs)
    if (overlaps(output.path)) return refused("it overlaps the path of output '" + name + "'");
  return {};
}

bool is_same_target(const Target& one, const Target& other) {
  // However an IPv6 address is written.
  const auto has = [&](const nvmetcp::Portal& portal) {
    return std::ranges::any_of(other.portals, [&](const nvmetcp::Portal& its) {
      return its.port == portal.port && nvmetcp::same_address(its.address, portal.address);
    });
  };
  return one.name == other.name || std::ranges::any_of(one.portals, has);
}

}  // namespace spark::config
