#include "bench/record/scenario.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace spark::bench {
namespace {

Scenario fio(std::string_view id, std::string_view title, std::string_view shape, std::string_view rw,
             Bytes block, unsigned depth, unsigned streams) {
  return {id, title, shape, Method::Fio, Cache::Direct, rw, block, depth, streams};
}

Scenario files(std::string_view id, std::string_view title, Cache cache) {
  Scenario scenario{id, title, "whole, 8 threads", Method::Files, cache, "", 0, 1, 8};
  scenario.counts_ios = true;
  return scenario;
}

std::array<Scenario, 9> make_scenarios() {
  Scenario samples = fio("samples", "random read", "128 KiB, QD 1 x 8", "randread", 128 * kKiB, 1, 8);
  samples.cache = Cache::Cold;
  Scenario latency = fio("latency", "random read", "4 KiB, QD 1", "randread", 4 * kKiB, 1, 1);
  latency.counts_ios = true;
  Scenario demand = fio("demand", "read at demand", "1 MiB, QD 8 x 4", "read", kMiB, 8, 4);
  demand.at_demand = true;
  Scenario checkpoint = fio("checkpoint", "sequential write", "1 MiB, QD 8 x 4", "write", kMiB, 8, 4);
  checkpoint.writes = true;
  Scenario first = files("epoch-1", "first epoch", Cache::Cold);
  Scenario second = files("epoch-2", "second epoch", Cache::Warm);
  first.part_of = second.part_of = "epochs";
  const Scenario copy{"stagecopy", "staging copy", "to durable", Method::Copy, Cache::Direct, "", 0, 1, 1};
  return {fio("shards", "sequential read", "1 MiB, QD 8 x 4", "read", kMiB, 8, 4),
          samples,
          files("smallfiles", "small files", Cache::Cold),
          latency,
          demand,
          checkpoint,
          copy,
          first,
          second};
}

}  // namespace

std::span<const Scenario> all_scenarios() {
  static const std::array scenarios = make_scenarios();
  return scenarios;
}

Result<std::vector<const Scenario*>> find_scenarios(std::string_view name) {
  std::vector<const Scenario*> found;
  std::vector<std::string> names;
  for (const Scenario& scenario : all_scenarios()) {
    const std::string_view chosen_as = scenario.part_of.empty() ? scenario.id : scenario.part_of;
    if (name == chosen_as) found.push_back(&scenario);
    if (names.empty() || names.back() != chosen_as) names.emplace_back(chosen_as);
  }
  if (!found.empty()) return found;
  const std::string near = nearest(name, names);
  return fail(Errc::Invalid, "there is no benchmark scenario '" + printable(name) + "'",
              near.empty() ? "choose from " + join(names, ", ") : "did you mean '" + near + "'?");
}

const char* to_string(Cache cache) {
  switch (cache) {
    case Cache::Direct:
      return "direct";
    case Cache::Cold:
      return "cold";
    case Cache::Warm:
      return "warm";
  }
  return "direct";
}

}  // namespace spark::bench
