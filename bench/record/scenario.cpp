#include "bench/record/scenario.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"

namespace spark::bench {
namespace {

Scenario fio(const char* id, const char* title, const char* shape, std::string_view rw, Bytes block,
             unsigned depth, unsigned streams) {
  return {{id, title, shape}, Method::Fio, rw, block, depth, streams};
}

Scenario cold(Scenario scenario) {
  scenario.cache = Cache::Cold;
  return scenario;
}

Scenario load(const char* id, const char* shape, LoadWay way, Bytes block, unsigned streams) {
  const Cache cache = way == LoadWay::Direct ? Cache::Direct : Cache::Cold;
  return {{id, "model loading", shape, false, false, cache}, Method::Load, "", block, 1, streams, false, way};
}

std::array<Scenario, 11> make_scenarios() {
  const ScenarioRecord small{"smallfiles", "small files", "whole, 8 threads", false, true, Cache::Cold};
  Scenario latency = fio("latency", "random read", "4 KiB, QD 1", "randread", 4 * kKiB, 1, 1);
  latency.counts_ios = true;
  Scenario demand = fio("demand", "read at demand", "1 MiB, QD 8 x 4", "read", kMiB, 8, 4);
  demand.at_demand = true;
  Scenario checkpoint = fio("checkpoint", "sequential write", "1 MiB, QD 8 x 4", "write", kMiB, 8, 4);
  checkpoint.writes = true;
  const ScenarioRecord copy{"stagecopy", "staging copy", "to durable"};
  return {fio("shards", "sequential read", "1 MiB, QD 8 x 4", "read", kMiB, 8, 4),
          cold(fio("stream", "streamed read", "128 KiB, QD 1 x 8", "read", 128 * kKiB, 1, 8)),
          cold(fio("samples", "random read", "128 KiB, QD 1 x 8", "randread", 128 * kKiB, 1, 8)),
          Scenario{small, Method::Files, "", 0, 1, 8},
          latency,
          demand,
          checkpoint,
          Scenario{copy, Method::Copy, "", 0, 1, 1},
          load("load-mmap", "mapped", LoadWay::Mapped, 16 * kMiB, 1),
          load("load-buffered", "read() of 16 MiB", LoadWay::Buffered, 16 * kMiB, 1),
          load("load-direct", "8 MiB, QD 1 x 8", LoadWay::Direct, 8 * kMiB, 8)};
}

}  // namespace

std::span<const Scenario> all_scenarios() {
  static const std::array scenarios = make_scenarios();
  return scenarios;
}

Result<const Scenario*> find_scenario(std::string_view id) {
  std::vector<std::string> ids;
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.id == id) return &scenario;
    ids.emplace_back(scenario.id);
  }
  const std::string near = nearest(id, ids);
  return fail(Errc::Invalid, "there is no benchmark scenario '" + printable(id) + "'",
              near.empty() ? "choose from " + join(ids, ", ") : "did you mean '" + near + "'?");
}

bool is_loading(std::string_view id) {
  return std::ranges::any_of(all_scenarios(), [&](const Scenario& scenario) {
    return scenario.id == id && scenario.method == Method::Load;
  });
}

const char* to_string(Cache cache) {
  static constexpr const char* kWords[] = {"direct", "cold", "warm"};
  return kWords[static_cast<std::size_t>(cache)];
}

}  // namespace spark::bench
