// YAML → Config, strictly: unknown keys, wrong types and impossible values are errors with file:line:column.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"

namespace spark::config {

inline constexpr char kDefaultPath[] = "/etc/spark-stage/spark-stage.yaml";

// Invalid, with every problem found, one per line, as "file:line:column: sentence"; NotFound if there is no
// such file.
Result<Config> parse(const std::string& yaml, const std::string& file_name);
Result<Config> load(const std::filesystem::path& file);

// A file with a `simulation` section is only for a simulated host, other files only for a real one. Invalid
// if the file is for the other kind, or for a simulation that would use this host's own cache.
Result<> check_simulation(const Config& config, bool is_simulated);

// The configuration in force, with every default filled in, as `config show` prints it. Contains file names
// of keys, never the keys.
json::object to_json(const Config& config);
json::object to_json(const Target& target);
json::object to_json(const Volume& volume);
std::string to_yaml(const Config& config);
std::string to_yaml(const json::object& shown);  // of to_json's object

// A YAML scalar with exactly this value, quoted if needed; the text is printable.
std::string yaml_word(std::string_view word);

// NAME from the config, or VOLUME:PATH for any folder of a volume. NotFound suggests the nearest name.
Result<Dataset> find_dataset(const Config& config, const std::string& name);
const Volume* find_volume(const Config& config, const std::string& name);
// Invalid if that can't be the cache's folder, since a dataset, an output or a volume is there. A file that
// named it would be refused too.
Result<> check_cache_path(const Config& config, const std::filesystem::path& path);
Result<Output> find_output(const Config& config, const std::string& name);

// Whether both are the same target: by name, or by a common address, because its controllers then belong to
// both.
bool is_same_target(const Target& one, const Target& other);

// NAME → SPARK_STAGE_<NAME>: upper case, with `_` for any other character than letters and digits.
std::string environment_name(const std::string& dataset);

}  // namespace spark::config
