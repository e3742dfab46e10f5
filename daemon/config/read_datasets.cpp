#include <set>

#include "base/text.hpp"
#include "daemon/config/mount_points.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

constexpr seconds kYear{366 * 86400};

// The data that datasets are checked against, prepared once for all of them.
struct Before {
  explicit Before(const Config& so_far) : mount_points(so_far.volumes), cache(so_far.cache.path) {
    for (const Volume& volume : so_far.volumes) volumes.insert(volume.name);
  }
  std::set<std::string> volumes;  // by name
  MountPoints mount_points;
  std::filesystem::path cache;
};

void read_path_on_volume(Dataset& dataset, Section& section, const Before& before) {
  dataset.volume = section.text("volume").value_or("");
  dataset.path = section.checked<std::string>("path", parse_relative_path).value_or("");
  if (!dataset.volume.empty() && !before.volumes.contains(dataset.volume))
    section.no_such("volume", "volume", dataset.volume, before.volumes, std::identity());
}

void read_own_path(Dataset& dataset, Section& section, const Before& before) {
  const auto path = section.checked<std::filesystem::path>("path", parse_absolute_path);
  if (!path) return;
  dataset.path = path->string();
  // With the path alone, an unmounted volume's empty folder would be staged instead.
  if (const std::string* volume = before.mount_points.above(*path)) {
    const std::string below = path->lexically_relative(before.mount_points.of(*volume)).string();
    section.problem("path", "is on volume '" + *volume + "'; write volume: " + *volume + ", path: " + below);
  }
  if (is_within(*path, before.cache) || is_within(before.cache, *path)) {
    section.problem("path", "overlaps the cache, " + before.cache.string());
  }
}

// Other hosts have it: nothing on this one says what it is.
void read_source(Section& section, const Config& so_far) {
  (void)section.choice<bool>("source", {{"peers", true}});
  for (const char* key : {"path", "volume", "exclude", "links", "include", "peers", "adopt"}) {
    if (section.has(key)) section.problem(key, "is not for `source: peers`: other hosts have the copy");
  }
  if (so_far.fleet.listen.empty())
    section.problem("source", "needs a section `fleet`, which names the other hosts");
}

// Which links are followed and which files are copied follows from the model.
std::optional<ModelSettings> read_model(Section& section) {
  ModelSettings model;
  const bool is_model = section.has("model");
  model.name = section.checked<std::string>("model", parse_model_name).value_or("");
  model.revision = section.checked<std::string>("revision", parse_model_revision).value_or("");
  model.include = section.texts("include");
  model.check = section.one_of<ModelCheck>("check");
  model.expect = section.checked<std::string>("expect", parse_pin).value_or("");
  if (section.is_empty_list("include"))
    section.problem("include", "names no file; leave the key out to have them all");
  for (const char* key : {"revision", "include", "check", "expect"}) {
    if (!is_model && section.has(key))
      section.problem(key, "is of a model; write its name too: model: ORG/NAME");
  }
  if (is_model && section.has("links"))
    section.problem("links", "is not for a model: a copy of it has no links");
  if (is_model && section.has("exclude"))
    section.problem("exclude", "is not for a model; `include` chooses its files");
  if (!is_model) return std::nullopt;
  return model;
}

Dataset read_dataset(const Member& member, const Config& so_far, const Before& before, Problems& problems) {
  Section section(member.value, "datasets." + member.key, problems);
  Dataset dataset;
  dataset.name = member.key;
  if (section.has("source")) {
    read_source(section, so_far);
  } else if (section.has("volume")) {
    read_path_on_volume(dataset, section, before);
  } else {
    read_own_path(dataset, section, before);
  }
  if (!section.has("path") && !section.has("source"))
    section.missing("path", "write the folder to stage, or `source: peers` if other hosts have it");
  dataset.exclude = section.texts("exclude");
  dataset.links = section.one_of<Links>("links");
  dataset.model = read_model(section);
  dataset.offline = section.choice<bool>("offline", {{"allow", true}, {"refuse", false}}).value_or(false);
  dataset.peers = section.boolean("peers").value_or(false);
  if (section.has("peers") && section.has("volume"))
    section.problem("peers", "is for a folder; hosts exchange what is on a volume without it");
  dataset.adopt = section.boolean("adopt").value_or(false);
  if (dataset.adopt && section.has("volume"))
    section.problem("adopt", "is for a folder of this host; other hosts can read the volume themselves");
  if (dataset.adopt && so_far.fleet.listen.empty())
    section.problem("adopt", "needs a section `fleet`, which names the hosts that may have the folder");
  dataset.env = section.checked<std::string>("env", parse_environment_variable).value_or("");
  if (dataset.model && dataset.env == "HF_HOME")
    section.problem(
        "env", "would take tokens and other caches from programs; `run` lets them load a model without it");
  dataset.namespaces = read_namespaces(section, "to let the pods of all use the dataset");
  return dataset;
}

Result<Bytes> parse_chunk(std::string_view text) {
  constexpr Bytes kLeast = 64 * kKiB, kMost = 8 * kMiB;
  if (text == "auto") return 0;
  auto chunk = parse_bytes(text);
  if (chunk && (*chunk < kLeast || *chunk > kMost))
    return fail(Errc::Invalid, "'" + std::string(text) + "' is not from 64KiB to 8MiB");
  return chunk;
}

void read_engine(EngineSettings& engine, Section& section) {
  constexpr unsigned kMost = 256;
  engine.threads = section.count_or_auto("threads", kMost).value_or(0);
  engine.depth = section.count_or_auto("depth", kMost).value_or(0);
  engine.chunk = section.checked<Bytes>("chunk", parse_chunk).value_or(0);
}

}  // namespace

std::vector<std::string> read_namespaces(Section& section, const std::string& without_it) {
  std::vector<std::string> namespaces;
  const auto names = section.texts("namespaces");
  for (const std::string& name : names) {
    if (auto valid = section.accept("namespaces", parse_pod_namespace(name)))
      namespaces.push_back(std::move(*valid));
  }
  if (section.is_empty_list("namespaces"))
    section.problem("namespaces", "names no namespace; leave the key out " + without_it);
  return namespaces;
}

CacheSettings read_cache(const Node& node, const Config& so_far, Problems& problems) {
  Section section(node, "cache", problems);
  CacheSettings cache;
  cache.path = section.checked<std::filesystem::path>("path", parse_absolute_path).value_or(cache.path);
  if (const auto capacity = section.checked<Amount>("capacity", parse_amount)) {
    cache.capacity = *capacity;
    if (*capacity == Amount{}) section.problem("capacity", "of nothing holds no dataset");
  }
  cache.keep_free = section.checked<Amount>("keep_free", parse_amount).value_or(cache.keep_free);
  // A scrub reads all staged data, so at most once an hour.
  if (section.has("scrub")) cache.scrub = section.duration_or("scrub", "off", std::chrono::hours(1), kYear);
  cache.yield = section.boolean("yield").value_or(cache.yield);
  cache.page_cache = section.one_of<PageCache>("page_cache");
  read_engine(cache.engine, section);
  cache.options = section.texts("options");
  for (const std::string& option : cache.options) {
    if (option != "suid" && option != "dev")
      section.problem("options",
                      "'" + printable(option) +
                          "' is not suid or dev; copies are served read-only, with nosuid and nodev");
  }
  if (cache.path == "/")
    section.problem("path", "'/' is the root file system; give the cache a folder of its own");
  const MountPoints mount_points(so_far.volumes);
  const std::string* volume = mount_points.above(cache.path);
  if (volume != nullptr && mount_points.of(*volume) != "/") {  // that one is refused as a volume
    section.problem(
        "path", cache.path.string() + " is on volume '" + *volume + "'; the cache belongs on a local disk");
  }
  for (const char* own : {"data", ".partial", ".named", ".trash"}) {
    const std::string* at = mount_points.at(cache.path / own);
    const std::string* inside = at != nullptr ? at : mount_points.below(cache.path / own);
    if (inside != nullptr)
      section.problem("path", "volume '" + *inside + "' is on " + mount_points.of(*inside).string() +
                                  ", in a folder of the cache; give the cache a folder of its own");
  }
  return cache;
}

std::map<std::string, Dataset> read_datasets(const Node& node, const Config& so_far, Problems& problems) {
  check_names(node, "datasets", "dataset", problems);
  std::map<std::string, Dataset> datasets;
  std::map<std::string, std::string> name_of_variable;
  const Before before(so_far);
  for (const Member& member : node.members) {
    datasets[member.key] = read_dataset(member, so_far, before, problems);
    const std::string variable = environment_name(member.key);
    const auto [first, is_new] = name_of_variable.emplace(variable, member.key);
    if (!is_new) {
      problems.add(member.at, "datasets." + member.key + ": `run` would give it the variable " + variable +
                                  ", as it does to dataset '" + first->second + "'; rename one");
    }
  }
  return datasets;
}

void check_names(const Node& node, const std::string& path, const std::string& kind, Problems& problems) {
  if (node.kind != Node::Kind::Map) problems.add(node.at, path + ": has to be a mapping of names");
  for (const Member& member : node.members) {
    if (is_name(member.key)) continue;
    problems.add(member.at, "'" + printable(member.key) + "' can't be the name of a " + kind +
                                ": use up to 64 letters, digits, '.', '_' and '-', a letter or digit first");
  }
}

}  // namespace spark::config
