// Stages one dataset into a cache.
#pragma once

#include "staging/cache.hpp"
#include "staging/cache_store.hpp"
#include "staging/clone.hpp"
#include "staging/copy_with.hpp"
#include "staging/monitor.hpp"
#include "staging/space.hpp"
#include "staging/walk.hpp"

namespace spark::staging {

class Stager {
 public:
  Stager(const CopyHooks& hooks, const CacheConfig& config, CacheStore& store, const ProgressSink& progress,
         const StopFlag& stop)
      : hooks_(hooks), config_(config), store_(store), stop_(stop), monitor_(progress) {}

  // See Cache::stage. Once for each Stager.
  Result<Staged> stage(const Source& source, const CopyOptions& options);

 private:
  const CopyHooks& hooks_;
  const CacheConfig& config_;
  CacheStore& store_;
  const StopFlag& stop_;
  Monitor monitor_;

  std::optional<Staged> serve(const GenerationRow& row, const Walked& walked);
  Result<Staged> copy(const Source& source, const Tree& tree, Walked walked, PartialArea& area,
                      const CopyOptions& options, std::optional<Previous> previous);
  std::optional<Previous> newest_of(const std::vector<GenerationRow>& ready) const;
  Result<> check_fits(const Need& need, Bytes keep_free);
  Result<std::uint64_t> publish(Manifest& manifest, PartialArea& area);
  Result<std::uint64_t> unused_generation(const std::string& dataset);
  void drop_superseded(Staged& staged);
};

// What is staged and being copied, and what may still come.
Result<Usage> usage_of(CacheStore& store, const CacheConfig& config);

}  // namespace spark::staging
