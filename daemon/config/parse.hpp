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

// Every problem found, one a line, as "file:line:column: sentence". Invalid; NotFound if there is no such
// file.
Result<Config> parse(const std::string& yaml, const std::string& file_name);
Result<Config> load(const std::filesystem::path& file);

// A file with the section `simulation` is for a simulated host alone, and others for a real one. Invalid: it
// is for the other kind, or for a simulation that would use this host's own cache.
Result<> check_simulation(const Config& config, bool is_simulated);

// What is in force, with every default filled in, as `config show` prints it. No key material, file names
// only.
json::object to_json(const Config& config);
json::object to_json(const Target& target);
json::object to_json(const Volume& volume);
std::string to_yaml(const Config& config);
std::string to_yaml(const json::object& shown);  // of to_json's object

// A YAML scalar that means exactly this text, quoted where it has to be; the text is printable.
std::string yaml_word(std::string_view word);

// NAME from the config or VOLUME:PATH for any folder of a volume. NotFound names the nearest.
Result<Dataset> find_dataset(const Config& config, const std::string& name);
const Volume* find_volume(const Config& config, const std::string& name);
Result<Output> find_output(const Config& config, const std::string& name);

// Whether the two are one target: by name, or by an address that both have, since its controllers are those
// of both then.
bool is_same_target(const Target& one, const Target& other);

// As in the file: "keep", "copy" or "refuse".
const char* to_string(Links links);
// "rename", "dcp", "hf", "deepspeed" or "marker", which has the file's name behind it; "" on request.
const char* to_string(Complete complete);

// NAME → SPARK_STAGE_<NAME>: upper case, `_` for what is neither letter nor digit.
std::string environment_name(const std::string& dataset);

}  // namespace spark::config
