// Copies that are served as they are, without a look at their source: to the holder of a lease its own one,
// and to requests that allow it the newest one while the source is away.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/demand.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

class ReadyCopies {
 public:
  ReadyCopies(const Context& context, const Activity& activity, const Catalog& catalog, const Leases& leases)
      : context_(context), activity_(activity), catalog_(catalog), leases_(leases) {}

  // A result as of a staging, with "unchecked" while the source is away; none if the dataset has to be
  // staged. Never a damaged copy, nor a doubtful one unless that is allowed. `failure`: of an attempt to
  // stage it.
  std::optional<json::object> find(const StageRequest& request, const config::Dataset& dataset,
                                   const Error* failure = nullptr) const;
  // Of the request's generation, whatever its state: it is mounted, and was served before.
  Result<json::object> find_mounted(const StageRequest& request) const;
  // There will be such a copy if the source stays away.
  bool may_serve(const StageRequest& request, const config::Dataset& dataset) const;

  // Adds what the request can do about a source that is away.
  Error with_hint(Error away, const StageRequest& request, const config::Dataset& dataset) const;

 private:
  bool allows_old(const StageRequest& request, const config::Dataset& dataset) const;
  std::optional<std::string> why_away(const config::Dataset& dataset, const Error* failure = nullptr) const;
  std::set<std::uint64_t> held_by(const StageRequest& request, const std::string& dataset) const;
  std::optional<json::object> choose(const StageRequest& request, const config::Dataset& dataset,
                                     bool stands_in) const;

  const Context& context_;
  const Activity& activity_;
  const Catalog& catalog_;
  const Leases& leases_;
};

}  // namespace spark::datasets
