// The sections of the file, each from its node to its part of the model. What is wrong is among the problems,
// and the part is then as complete as it can be, for the checks that follow.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/config/problems.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/yaml.hpp"

namespace spark::config {

std::map<std::string, Target> read_targets(const Node& node, Problems& problems);
std::vector<Volume> read_volumes(const Node& node, const Config& so_far, Problems& problems);
CacheSettings read_cache(const Node& node, const Config& so_far, Problems& problems);
std::map<std::string, Dataset> read_datasets(const Node& node, const Config& so_far, Problems& problems);
std::map<std::string, Output> read_outputs(const Node& node, const Config& so_far, Problems& problems);
FleetSettings read_fleet(const Node& node, Problems& problems);
MetricsSettings read_metrics(const Node& node, Problems& problems);

// The key `namespaces` of a dataset or an output: names of Kubernetes namespaces. `without_it` says what
// leaving the key out means, for an empty list.
std::vector<std::string> read_namespaces(Section& section, const std::string& without_it);

// For a mapping of names to sections: a problem where the name is none, or where the node is not a mapping.
void check_names(const Node& node, const std::string& path, const std::string& kind, Problems& problems);

}  // namespace spark::config
