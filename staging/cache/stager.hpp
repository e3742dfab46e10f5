// Stages one dataset into a cache.
#pragma once

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/room.hpp"
#include "staging/copy/clone.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/pipeline.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {

class Stager {
 public:
  Stager(const CopyHooks& hooks, const CacheConfig& config, CacheStore& store, const ProgressSink& progress,
         const StopFlag& stop)
      : hooks_(hooks), config_(config), store_(store), stop_(stop), monitor_(progress) {}

  // See Cache::stage. May be called once for each Stager.
  Result<Staged> stage(const Source& source, const CopyOptions& options);

 private:
  const CopyHooks& hooks_;
  const CacheConfig& config_;
  CacheStore& store_;
  const StopFlag& stop_;
  Monitor monitor_;
  std::vector<bool> equal_;             // see Previous
  std::optional<ModelRecord> model_{};  // of the source, once it was walked
  std::string ref_{};                   // see Model::ref

  Result<> keep_fitting(const Source& source, PartialArea& area);
  // `opened`: without it, an unchanged copy is served all the same.
  Result<Staged> look_and_stage(const Source& source, Tree& tree, const CopyOptions& options,
                                Result<PartialArea>& opened, const std::vector<GenerationRow>& ready);
  Result<Walked> walk(const Source& source, Tree& tree, const CopyOptions& options);
  Result<> check_model_in(const Tree& source, PartialArea& area, const CopyOptions& options,
                          const GenerationRow* earlier);
  Result<Staged> copy(const Source& source, const Tree& tree, Walked walked, PartialArea& area,
                      const CopyOptions& options, const GenerationRow* earlier);
  // Reserves the copy's space without copying.
  Result<Staged> reserve(const Source& source, Walked walked, const PartialArea& area,
                         const CopyOptions& options, const GenerationRow* earlier);
  RoomRequest room_for(const Source& source, const Entries& entries, const Resumed& resumed,
                       const PartialArea& area, const CopyOptions& options);
  std::optional<Previous> contents_of(const GenerationRow& row) const;
  Result<std::uint64_t> publish(const Sealed& sealed, PartialArea& area, Bytes not_copied,
                                CacheStore::Origin origin);
  // Compares files that only look changed. Serves the earlier copy if it then equals the source. May empty
  // `walked`.
  Result<std::optional<Staged>> compare(const Source& source, const Tree& tree, const CopyOptions& options,
                                        const PartialArea& area, const GenerationRow* earlier,
                                        Walked& walked);
  Result<> hold(const Source& source, Staged& staged);
  void drop_superseded(Staged& staged, const std::vector<InUse>& in_use);
};

}  // namespace spark::staging
