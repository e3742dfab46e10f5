// The catalog and the folder of a cache, kept in step: a row for every published generation, a link to the
// newest that is sound: neither damaged nor doubtful. Without such a one there is no link.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "staging/cache/cache_folder.hpp"
#include "staging/cache/catalog.hpp"

namespace spark::staging {

class CacheStore {
 public:
  CacheStore(CacheFolder folder, std::unique_ptr<Catalog> catalog, const Clock& clock, StepHook step)
      : folder_(std::move(folder)), catalog_(std::move(catalog)), clock_(clock), step_(std::move(step)) {}

  CacheFolder& folder() { return folder_; }
  Catalog& catalog() { return *catalog_; }
  const StepHook& step() const { return step_; }
  WallTime now() const { return clock_.wall(); }

  // Ties catalog and folder together at the first use; Unavailable if they are not each other's.
  Result<> check_identity();

  // After a crash, for each dataset: completes what was renamed, deletes what was being evicted, forgets what
  // is proven to be gone. What goes wrong is noted as that dataset's trouble, and concerns no other. Only
  // datasets that need it are locked; those that another process works on are left to it. `looked_over`: see
  // Cache::recover.
  Result<> recover(const std::function<void()>& looked_over);
  // The same for one dataset, whose lock the caller has. What could not be deleted is noted and no error: an
  // error tells that it is not known what is there.
  enum class Trash { Kept, Emptied };
  Result<> recover_key(const std::string& key, PartialArea& area, Trash trash = Trash::Emptied);

  // Newest first.
  Result<std::vector<GenerationRow>> ready_generations(const std::string& dataset);

  // Enters a generation that is published and updates the link.
  // `stage_seconds` and `from`: see GenerationRow.
  Result<> enter(const ManifestHeader& header, std::uint64_t generation, const Summary& summary,
                 double stage_seconds, std::optional<BytesFrom> from);

  Result<> update_link(const std::string& dataset);

  // With the datasets' locks held. Refused while one of them is leased; nothing is evicted then.
  Result<> mark_evicted(const std::vector<GenerationRow>& rows);
  // What was marked. All that can be deleted is; the first failure is given, and noted as a trouble.
  Result<> delete_marked(const std::vector<GenerationRow>& rows);

 private:
  CacheFolder folder_;
  std::unique_ptr<Catalog> catalog_;
  const Clock& clock_;
  StepHook step_;

  Result<bool> needs_recovery(const std::string& key);
  Result<> recover_in_turn(const std::string& key, Trash trash);
  Result<std::vector<GenerationRow>> rows_of(const std::string& key);
  Result<> enter_unknown(const std::string& key, std::uint64_t generation);
  Result<> forget(const GenerationRow& row);
  Result<> put_aside(const GenerationRow& row);
  Result<> finish_eviction(const GenerationRow& row);
};

}  // namespace spark::staging
