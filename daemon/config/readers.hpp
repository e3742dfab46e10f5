// The sections of the file, each read from its node into its part of the model. Errors are added to the
// problems. The part is then as complete as possible, for the checks that follow.
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

// The key `namespaces` of a dataset or an output: names of Kubernetes namespaces. An empty list is an error;
// `without_it` tells the user the meaning of leaving the key out.
std::vector<std::string> read_namespaces(Section& section, const std::string& without_it);

// For a mapping of names to sections: reports invalid names, and nodes that are not mappings.
void check_names(const Node& node, const std::string& path, const std::string& kind, Problems& problems);

}  // namespace spark::config
