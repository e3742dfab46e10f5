// The catalog and the folder of a cache, kept consistent: a row for every published generation, and a link to
// the newest sound one, that is, neither damaged nor doubtful. Without a sound generation there is no link.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/damage.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {

class CacheStore {
 public:
  CacheStore(CacheFolder folder, std::unique_ptr<Catalog> catalog, const Clock& clock, StepHook step)
      : folder_(std::move(folder)),
        catalog_(std::move(catalog)),
        damage_(folder_.data(), *catalog_),
        clock_(clock),
        step_(std::move(step)) {}
  CacheStore(const CacheStore&) = delete;
  CacheStore& operator=(const CacheStore&) = delete;

  CacheFolder& folder() { return folder_; }
  Catalog& catalog() { return *catalog_; }
  DamageRecords& damage() { return damage_; }
  const StepHook& step() const { return step_; }
  WallTime now() const { return clock_.wall(); }

  // Ties catalog and folder together at the first use; Unavailable if they belong to different caches.
  // `state_dir`: where the catalog is, for the message.
  Result<> check_identity(const std::filesystem::path& state_dir);

  // After a crash, for each dataset: completes renames, deletes copies that were being evicted, removes the
  // rows of generations that are proven to be gone. A failure is recorded as that dataset's trouble and
  // affects no other. Only datasets that need recovery are locked; datasets that another process works on are
  // left to that process. `looked_over`: see Cache::recover. `compares`: the manifests with the rows.
  Result<> recover(const std::function<void()>& looked_over, bool compares);
  // The same for one dataset; the caller has its lock. A failed deletion is recorded, if the catalog has room
  // for that, and is no error. An error means that the state of the dataset is unknown.
  enum class Trash { Kept, Emptied };
  Result<> recover_key(const std::string& key, PartialArea& area, Trash trash = Trash::Emptied);

  // With what is known about their damage; by dataset, newest first.
  Result<std::vector<GenerationRow>> generations();
  // Newest first. An error if it is not known whether they are damaged.
  Result<std::vector<GenerationRow>> ready_generations(const std::string& dataset);

  struct Origin {
    double stage_seconds = 0;         // see GenerationRow
    std::optional<BytesFrom> from{};  // the same
    // By generation: what evicting it frees from now on, as it shares files with the new one.
    std::map<std::uint64_t, Bytes> allocated{};
  };
  // Adds a published generation to the catalog, in place of its reservation, and updates the link.
  Result<> enter(const ManifestHeader& header, std::uint64_t generation, const Summary& summary,
                 const Origin& origin);

  Result<> update_link(const std::string& dataset);

  // Records a verification of the generation; `known` is what was known when it began. Empty damage: none.
  Result<> note_verified(const GenerationRow& row, const std::string& damage, const Damage& known);
  // Before a copy continues: discards what may be damaged of the copy in progress.
  Result<> discard_suspect(const std::string& dataset, PartialArea& area);

  // The caller has the datasets' locks. Refused while one of them is leased; nothing is evicted then.
  Result<> mark_evicted(const std::vector<GenerationRow>& rows);
  // Deletes as much as possible of these marked generations of one dataset; the first failure is returned,
  // and recorded as a trouble. Refused: a program has opened one meanwhile, and all of them stay as they
  // were.
  Result<> delete_marked(const std::vector<GenerationRow>& rows);

 private:
  CacheFolder folder_;
  std::unique_ptr<Catalog> catalog_;
  DamageRecords damage_;
  const Clock& clock_;
  StepHook step_;

  Result<> tie(const std::filesystem::path& state_dir);
  Result<bool> needs_recovery(const std::string& key);
  Result<> recover_in_turn(const std::string& key, Trash trash, bool compares);
  Result<std::vector<GenerationRow>> rows_of(const std::string& key);
  Result<bool> enter_unknown(const std::string& key, std::uint64_t generation);
  Result<> forget(const GenerationRow& row);
  Result<> put_aside(const std::vector<GenerationRow>& rows);
  Result<> put_back(std::vector<GenerationRow> rows, Error why);
  Result<> delete_aside(const GenerationRow& row);
};

// Of a generation to be made: never a number whose name is taken, for whatever reason.
Result<std::uint64_t> unused_generation(CacheStore& store, const std::string& dataset);

}  // namespace spark::staging
