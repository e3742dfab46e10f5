#include "bench/scenario.hpp"

#include <array>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr std::array kScenarios = {
    Scenario{"shards", "sequential read", "1 MiB, QD 8 x 4", "read", kMiB, 8, 4, false, false},
    Scenario{"checkpoint", "sequential write", "1 MiB, QD 8 x 4", "write", kMiB, 8, 4, true, false},
    Scenario{"samples", "random read", "128 KiB, QD 4 x 4", "randread", 128 * kKiB, 4, 4, false, false},
    Scenario{"iops", "random read", "4 KiB, QD 8 x 4", "randread", 4 * kKiB, 8, 4, false, true},
    Scenario{"latency", "random read", "4 KiB, QD 1", "randread", 4 * kKiB, 1, 1, false, true},
};

}  // namespace

std::span<const Scenario> all_scenarios() {
  return kScenarios;
}

Result<const Scenario*> find_scenario(std::string_view id) {
  std::vector<std::string> ids;
  for (const Scenario& scenario : kScenarios) {
    if (scenario.id == id) return &scenario;
    ids.emplace_back(scenario.id);
  }
  const std::string near = nearest(id, ids);
  return fail(Errc::Invalid, "there is no benchmark scenario '" + printable(id) + "'",
              near.empty() ? "choose from " + join(ids, ", ") : "did you mean '" + near + "'?");
}

}  // namespace spark::bench
