// The memory that staged copies hold in the page cache: watched in a process that the daemon starts and
// supervises, and dropped on request.
#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/cache/memory/cache_memory.hpp"
#include "staging/cache/memory/host_memory.hpp"

namespace spark::workers {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kBetweenLooks{2};
// Of one CPU core: a look that took long is followed by a longer pause.
constexpr int kShareOfCore = 50;
// A look follows a change of this size in the host's page cache, or the longer interval.
constexpr Bytes kChange = 32 * kMiB;
constexpr std::chrono::seconds kLongestInterval{60};

// The leased datasets. Read once for a look, which asks for each of the copies.
class Leased {
 public:
  Leased(std::filesystem::path state_dir, const std::filesystem::path& cache)
      : state_dir_(std::move(state_dir)), spare_(cache) {}

  // Also if that can't be found out.
  bool has(const std::string& dataset) {
    if (!known_) known_ = read();
    return !*known_ || (*known_)->contains(dataset);
  }
  void look_again() { known_.reset(); }

 private:
  using Names = std::set<std::string>;

  Result<Names> read() const {
    auto catalog = staging::Catalog::open(state_dir_, staging::IfMissing::Fail);
    auto leases = catalog ? (*catalog)->leases() : fail(catalog.error());
    const auto spare = leases ? spare_.all() : fail(leases.error());
    if (!spare) return spare.take_error();
    leases->insert(leases->end(), spare->leases.begin(), spare->leases.end());
    const WallTime now = SystemClock().wall();
    Names names;
    for (const staging::Lease& lease : *leases)
      if (!lease.is_soft && is_live(lease, now)) names.insert(lease.dataset);
    return names;
  }

  std::filesystem::path state_dir_;
  staging::SpareLeases spare_;
  std::optional<Result<Names>> known_;
};

json::object shown(const staging::DatasetMemory& one) {
  return {{"name", printable(one.dataset)},
          {"bytes", one.held},
          {"estimated", one.is_estimate},
          {"freed_bytes", one.freed}};
}

json::object report(const staging::CacheMemory& memory, bool frees) {
  json::array datasets;
  for (const staging::DatasetMemory& one : memory.datasets()) datasets.push_back(shown(one));
  return {
      {"page_cache", frees ? "drop" : "leave"}, {"bytes", memory.held()}, {"datasets", std::move(datasets)}};
}

}  // namespace

// {"cache", "page_cache": "auto" | "drop" | "leave"} → only an error. Each progress is the object `memory` of
// `status --json`.
Result<json::object> watch_memory_verb(const json::object& request, const ProgressLine& progress) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "memory worker: no cache in the request");
  const std::filesystem::path path = get_text(*cache, "path");
  Leased leased(get_text(*cache, "state_dir"), path);
  const std::string wanted = get_string(request, "page_cache").value_or("auto");
  const SystemClock clock;
  staging::CacheMemory memory(path, clock, [&](const std::string& dataset) { return leased.has(dataset); });
  json::object told;
  Bytes seen = 0;
  std::optional<SteadyTime> looked_at;
  for (;; std::this_thread::sleep_for(kBetweenLooks)) {
    const Bytes now = staging::page_cache_of_host(SystemRoot{});
    const auto pause = looked_at ? clock.steady() - *looked_at : kLongestInterval;
    const bool frees = wanted == "drop" || (wanted == "auto" && staging::gpu_shares_memory(SystemRoot{}));
    const bool has_changed = std::max(now, seen) - std::min(now, seen) >= kChange;
    const bool has_work = frees && memory.held() > 0;
    if (pause < kLongestInterval && !has_changed && !has_work) continue;
    if (pause < memory.cost() * kShareOfCore) continue;
    leased.look_again();
    if (auto looked = memory.look(frees); !looked) return looked.take_error();
    looked_at = clock.steady();
    seen = staging::page_cache_of_host(SystemRoot{});
    json::object now_known = report(memory, frees);
    if (now_known == told) continue;
    progress(now_known);
    told = std::move(now_known);
  }
}

// {"cache", "datasets": [NAME…], none means all} → {"datasets": [{"name", "bytes", "estimated",
// "freed_bytes"}…]}
Result<json::object> drop_memory_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "memory worker: no cache in the request");
  const auto dropped = staging::drop_from_memory(get_text(*cache, "path"), get_strings(request, "datasets"),
                                                 SystemClock(), kNeverStopped);
  if (!dropped) return dropped.take_error();
  json::array datasets;
  for (const staging::DatasetMemory& one : *dropped) datasets.push_back(shown(one));
  return json::object{{"datasets", std::move(datasets)}};
}

}  // namespace spark::workers
