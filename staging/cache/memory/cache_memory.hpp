// The memory that the copies of a cache hold in the page cache.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/cache/memory/copy_memory.hpp"

namespace spark::staging {

// Of all generations of a dataset.
struct DatasetMemory {
  std::string dataset;
  Bytes held = 0;
  bool is_estimate = false;
  Bytes freed = 0;  // since the watch began, or by a drop
};

// Looks at them again and again.
class CacheMemory {
 public:
  // `is_leased`: of a dataset; see CopyMemory::look.
  CacheMemory(std::filesystem::path cache, const Clock& clock,
              std::function<bool(const std::string& dataset)> is_leased)
      : cache_(std::move(cache)), clock_(clock), is_leased_(std::move(is_leased)) {}

  // Keeps nothing open: the cache's drive can be unmounted. A failed one forgets what it knew.
  Result<> look(bool frees);

  std::vector<DatasetMemory> datasets() const;  // those with a copy, by name
  Bytes held() const;
  // How long the last look took, without the time for freeing memory.
  std::chrono::nanoseconds cost() const { return cost_; }

 private:
  std::filesystem::path cache_;
  const Clock& clock_;
  std::function<bool(const std::string&)> is_leased_;
  std::map<std::filesystem::path, CopyMemory> copies_;      // by their folder
  std::map<std::filesystem::path, SteadyTime> unreadable_;  // the same; when that was found
  std::map<std::string, DatasetMemory> datasets_;
  std::chrono::nanoseconds cost_{0};

  Result<> find_copies();
};

// Takes the copies of these datasets, or of all if there are none, out of memory: see CopyMemory::drop.
// NotFound if one has no copy.
Result<std::vector<DatasetMemory>> drop_from_memory(const std::filesystem::path& cache,
                                                    const std::vector<std::string>& datasets,
                                                    const Clock& clock, const StopFlag& stop);

}  // namespace spark::staging
