// What `stage` and `run` share: asking for datasets, and telling a person how it went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/context.hpp"

namespace spark::cli {

struct Lease {
  std::optional<Duration> time;  // a lease by time
  bool hold = false;             // a lease for as long as this process lives
};

Request stage_request(const std::vector<std::string>& datasets, const Lease& lease);

// Stages and waits. The RESULT of `stage`, after a line for each dataset on stderr.
Result<json::object> stage_and_tell(Context& context, const std::vector<std::string>& datasets,
                                    const Lease& lease);

struct StagedDataset {
  std::string name, path, lease;  // lease: empty if none was given
};

// In the order of `datasets`, under the names they were asked for. Failed if one has no path.
Result<std::vector<StagedDataset>> staged_datasets(const json::object& result,
                                                   const std::vector<std::string>& datasets);

}  // namespace spark::cli
