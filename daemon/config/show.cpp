// Prints the config in force in the file's format, so that it can be read back.
#include "daemon/config/connect_options.hpp"
#include "daemon/config/parse.hpp"

namespace spark::config {

// Without quotes if YAML can only read the word as this text.
std::string yaml_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos &&
                     word[0] != '-' && word != "null" && word != "Null" && word != "NULL";
  return plain ? std::string(word) : json::serialize(json::string(word.data(), word.size()));
}

namespace {

std::string seconds_or(const std::optional<std::chrono::seconds>& duration, const char* word) {
  return duration ? std::to_string(duration->count()) + "s" : word;
}

template <class Words>
json::array list(const Words& words) {
  return json::array(words.begin(), words.end());
}

json::value number_or_auto(std::uint64_t number) {
  return number == 0 ? json::value("auto") : json::value(number);
}

// Writes each option; empty texts and sections are omitted.
struct OptionWriter {
  json::object& to;

  void operator()(const char* key, bool value) const { to[key] = value; }
  void operator()(const char* key, unsigned value) const { to[key] = number_or_auto(value); }
  void operator()(const char* key, std::optional<std::chrono::seconds> value, const char* none = "") const {
    to[key] = seconds_or(value, none);
  }
  template <class Parse>
  void operator()(const char* key, const std::string& value, const Parse&, const char* = nullptr) const {
    if (!value.empty()) to[key] = value;
  }
  void operator()(const char* key, const std::string& value, std::initializer_list<const char*> words) const {
    to[key] = value.empty() ? *words.begin() : value;
  }
  template <class Options>
  void section(const char* key, const Options& options) const {
    json::object inner;
    options(OptionWriter{inner});
    if (!inner.empty()) to[key] = std::move(inner);
  }
};

}  // namespace

json::object to_json(const Target& target) {
  json::array portals;
  for (const nvmetcp::Portal& portal : target.portals) portals.emplace_back(to_string(portal));
  json::object shown{{"portals", std::move(portals)}};
  for_each_option(target.options, OptionWriter{shown});
  return shown;
}

json::object to_json(const Volume& volume) {
  json::object shown;
  if (volume.nfs) shown["nfs"] = volume.nfs->host + ":" + volume.nfs->path;
  if (volume.nvme) {
    shown["target"] = volume.nvme->target;
    shown["subsystem"] = volume.nvme->subsystem;
    shown["namespace"] = volume.nvme->nsid;
    json::object filesystem;
    if (!volume.nvme->filesystem_type.empty()) filesystem["type"] = volume.nvme->filesystem_type;
    if (!volume.nvme->filesystem_uuid.empty()) filesystem["uuid"] = volume.nvme->filesystem_uuid;
    if (!filesystem.empty()) shown["filesystem"] = std::move(filesystem);
  }
  shown["mount"] = volume.mount.string();
  shown["access"] = to_string(volume.access);
  if (volume.nvme && volume.access == Access::Exclusive) shown["fence"] = to_string(volume.fence);
  if (volume.nvme) shown["on_loss"] = to_string(volume.on_loss);
  shown["options"] = list(volume.options);
  return shown;
}

namespace {

json::value show(const Amount& amount) {
  if (amount.percent > 0) return json::value(to_string(amount));
  return json::value(amount.bytes);
}

json::object show(const CacheSettings& cache) {
  const bool all_of_it = cache.capacity == Amount{};
  return {{"path", cache.path.string()},
          {"capacity", all_of_it ? json::value("100%") : show(cache.capacity)},
          {"keep_free", show(cache.keep_free)},
          {"scrub", seconds_or(cache.scrub, "off")},
          {"yield", cache.yield},
          {"page_cache", to_string(cache.page_cache)},
          {"threads", number_or_auto(cache.engine.threads)},
          {"depth", number_or_auto(cache.engine.depth)},
          {"chunk", number_or_auto(cache.engine.chunk)},
          {"options", list(cache.options)}};
}

void show(const ModelSettings& model, json::object& shown) {
  shown["model"] = model.name;
  if (!model.revision.empty()) shown["revision"] = model.revision;
  if (!model.include.empty()) shown["include"] = list(model.include);
  shown["check"] = to_string(model.check);
  if (!model.expect.empty()) shown["expect"] = model.expect;
}

json::object show(const Dataset& dataset) {
  json::object shown;
  if (!dataset.volume.empty()) shown["volume"] = dataset.volume;
  if (dataset.path.empty()) {
    shown["source"] = "peers";
  } else {
    shown["path"] = dataset.path;
  }
  if (dataset.model) {
    show(*dataset.model, shown);
  } else if (!dataset.path.empty()) {
    shown["exclude"] = list(dataset.exclude);
    shown["links"] = to_string(dataset.links);
  }
  if (dataset.offline) shown["offline"] = "allow";
  if (dataset.peers) shown["peers"] = true;
  if (dataset.adopt) shown["adopt"] = true;
  if (!dataset.env.empty()) shown["env"] = dataset.env;
  if (!dataset.namespaces.empty()) shown["namespaces"] = list(dataset.namespaces);
  return shown;
}

json::object show(const Output& output) {
  json::object shown{{"path", output.path.string()}, {"volume", output.volume}, {"to", output.to}};
  if (output.complete != Complete::OnRequest)
    shown["complete"] = to_string(output.complete) + (output.marker.empty() ? "" : ":" + output.marker);
  const std::pair<const char*, std::uint32_t> counts[] = {{"keep", output.keep},
                                                          {"keep_local", output.keep_local},
                                                          {"keep_every", output.keep_every},
                                                          {"nodes", output.nodes}};
  for (const auto& [key, count] : counts) {
    if (count > 0) shown[key] = count;
  }
  if (!output.namespaces.empty()) shown["namespaces"] = list(output.namespaces);
  return shown;
}

json::object show(const MetricsSettings& metrics) {
  return {{"listen", metrics.listen ? to_string(*metrics.listen) : "off"}};
}

json::object show(const FleetSettings& fleet) {
  json::object peers;
  for (const auto& [name, addresses] : fleet.peers) {
    json::array& all = peers[name].emplace_array();
    for (const nvmetcp::Portal& address : addresses) all.emplace_back(to_string(address));
  }
  json::array listen;
  for (const nvmetcp::Portal& address : fleet.listen) listen.emplace_back(to_string(address));
  json::object shown{
      {"listen", listen.size() == 1 ? listen.front() : json::value(listen)},
      {"key_file", fleet.key_file.string()},
      {"peers", std::move(peers)},
      {"upload", fleet.upload.percent > 0 ? json::value(to_string(fleet.upload))
                                          : json::value(std::to_string(fleet.upload.bytes) + "B/s")}};
  if (fleet.dns) shown["dns"] = to_string(*fleet.dns);
  return shown;
}

std::string yaml_value(const json::value& value) {
  if (const auto* text = value.if_string()) return yaml_word({text->data(), text->size()});
  const auto* array = value.if_array();
  if (array == nullptr) return json::serialize(value);
  std::string out;
  for (const json::value& item : *array) out += (out.empty() ? "" : ", ") + yaml_value(item);
  return "[" + out + "]";
}

void write_yaml(const json::object& object, const std::string& indent, std::string& out) {
  for (const auto& [key, value] : object) {
    out += indent + yaml_word({key.data(), key.size()}) + ":";
    const auto* inner = value.if_object();
    if (inner == nullptr) {
      out += " " + yaml_value(value) + "\n";
    } else if (inner->empty()) {
      out += " {}\n";
    } else {
      out += "\n";
      write_yaml(*inner, indent + "  ", out);
    }
  }
}

}  // namespace

json::object to_json(const Config& config) {
  json::object targets, volumes, datasets;
  for (const auto& [name, target] : config.targets) targets[name] = to_json(target);
  for (const Volume& volume : config.volumes) volumes[volume.name] = to_json(volume);
  for (const auto& [name, dataset] : config.datasets) datasets[name] = show(dataset);
  json::object outputs;
  for (const auto& [name, output] : config.outputs) outputs[name] = show(output);
  json::object shown{{"version", 1},
                     {"targets", std::move(targets)},
                     {"volumes", std::move(volumes)},
                     {"cache", show(config.cache)},
                     {"datasets", std::move(datasets)},
                     {"metrics", show(config.metrics)}};
  if (!outputs.empty()) shown["outputs"] = std::move(outputs);
  if (!config.fleet.listen.empty()) shown["fleet"] = show(config.fleet);
  return shown;
}

std::string to_yaml(const json::object& shown) {
  std::string out;
  write_yaml(shown, "", out);
  return out;
}

std::string to_yaml(const Config& config) {
  return to_yaml(to_json(config));
}

}  // namespace spark::config
