#include "bench/measure/load_work.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/text.hpp"
#include "bench/measure/plan.hpp"
#include "staging/files/io/meminfo.hpp"

namespace spark::bench {
namespace {

// Free pages that a CPU keeps at hand are not in MemFree: hundreds of MB after files were evicted.
Bytes pages_at_hand(const SystemRoot& root) {
  const auto zones = read_file(root / "proc/zoneinfo");
  Bytes pages = 0;
  for (const std::string& line : split(zones ? *zones : "", '\n')) {
    const std::string_view words = trim(line);
    if (words.starts_with("count:")) pages += parse_bytes(trim(words.substr(6))).value_or(0);
  }
  return pages * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

Bytes free_memory(const SystemRoot& root) {
  const Bytes free = staging::read_meminfo(root, "MemFree");
  return free == 0 ? 0 : free + pages_at_hand(root);
}

}  // namespace

ModelLoading load_work(const BenchTarget& target, const BenchOptions& options, const Scenario& scenario) {
  ModelLoading loading;
  loading.files = weights_of(target.record.files, layout_size(options));
  const auto first = static_cast<std::ptrdiff_t>(options.part.offset_in(loading.files.size()));
  std::rotate(loading.files.begin(), loading.files.begin() + first, loading.files.end());
  loading.way = scenario.way;
  loading.block = scenario.block;
  loading.threads = scenario.streams;
  loading.rate = options.rate_limit;
  loading.free_memory = [&root = options.root] { return spark::bench::free_memory(root); };
  return loading;
}

std::vector<std::string> load_cautions(const Cell& cell, const BenchOptions& options, LoadWay way) {
  std::vector<std::string> cautions;
  if (cell.bytes < layout_size(options))
    cautions.push_back("the path holds only " + format_bytes(cell.bytes) + " to load, less than --size");
  if (way != LoadWay::Direct && cell.memory && cell.bytes > cell.memory->before)
    cautions.push_back("the " + format_bytes(cell.bytes) + " did not fit into the free memory (" +
                       format_bytes(cell.memory->before) +
                       "): the page cache gave up other files, and what was read first");
  return cautions;
}

}  // namespace spark::bench
