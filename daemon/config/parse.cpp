#include "daemon/config/parse.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/yaml.hpp"

namespace spark::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

void check_version(Section& top) {
  if (!top.has("version")) {
    top.missing("version", "write 'version: 1'");
  } else if (const auto version = top.text("version"); version && *version != "1") {
    top.problem("version", "'" + printable(*version) + "' is not known; this program reads version 1");
  }
}

Config read_config(const Node& root, Problems& problems) {
  Config config;
  Section top(root, "", problems);
  check_version(top);
  // In this order: each section is checked against the sections before it.
  if (const Node* node = top.map("targets")) config.targets = read_targets(*node, problems);
  if (const Node* node = top.map("volumes")) config.volumes = read_volumes(*node, config, problems);
  // Without the section, it is checked as well: a volume may be on the default folder.
  Node no_settings;
  no_settings.kind = Node::Kind::Map;
  no_settings.at = root.at;
  const Node* cache = top.map("cache");
  config.cache = read_cache(cache == nullptr ? no_settings : *cache, config, problems);
  if (const Node* node = top.map("fleet")) config.fleet = read_fleet(*node, problems);
  if (const Node* node = top.map("datasets")) config.datasets = read_datasets(*node, config, problems);
  if (const Node* node = top.map("outputs")) config.outputs = read_outputs(*node, config, problems);
  if (const Node* node = top.map("metrics")) config.metrics = read_metrics(*node, problems);
  config.has_simulation = top.has("simulation");
  return config;
}

}  // namespace

Result<Config> parse(const std::string& yaml, const std::string& file_name) {
  if (yaml.size() > kMaxFileBytes) {
    return fail(Errc::Invalid, printable(file_name) + ":1:1: the file is larger than 1 MiB");
  }
  Problems problems;
  Config config;
  if (const auto root = read_yaml(yaml, problems)) config = read_config(*root, problems);
  if (!problems.none()) return fail(Errc::Invalid, problems.report(file_name));
  config.file = file_name;
  return config;
}

Result<Config> load(const std::filesystem::path& file) {
  const auto yaml = read_file(file, kMaxFileBytes);
  if (yaml) return parse(*yaml, file.string());
  if (yaml.error().kind != Errc::NotFound) return fail_with(yaml.error(), "reading the config");
  return fail(Errc::NotFound, "there is no config file " + printable(file.string()),
              "`spark-stage discover ADDRESS --yaml` prints one to start from");
}

Result<> check_simulation(const Config& config, bool is_simulated) {
  const std::string file = printable(config.file.string());
  if (config.has_simulation && !is_simulated) {
    return fail(Errc::Invalid, file + " describes a simulated host, not this one",
                "start it with `spark-staged --sim`, or remove its section `simulation`");
  }
  if (!config.has_simulation && is_simulated) {
    return fail(Errc::Invalid, file + " has no section `simulation`",
                "docs/simulation.md describes it; `simulation: {}` is enough");
  }
  if (is_simulated && config.cache.path == CacheSettings{}.path) {
    return fail(Errc::Invalid,
                file + " would have the simulation use this host's own cache, " + config.cache.path.string(),
                "set `cache: {path: …}` to a folder of the simulation's own");
  }
  return {};
}

}  // namespace spark::config
