// The cache's memory across restarts: which generations of which datasets are ready, and who leases them.
// SQLite (WAL, synchronous=FULL) in the state folder; several processes may have it open. Every change is
// durable when it returns. What can't be read is an error, never an empty catalog. One thread at a time uses
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/leases/lease.hpp"

namespace spark::staging {

enum class GenerationState { Ready, Evicting };

// One state of a source, and what of it belongs to the dataset.
struct SourceState {
  std::string key;    // see state_of(); empty: not known
  std::string notes;  // WalkNotes of that state, as a message
};

// Where a copy's content was read, without what it took over from an earlier one.
struct BytesFrom {
  Bytes volume = 0, peers = 0;
};

struct GenerationRow {
  std::string dataset;
  std::uint64_t generation = 0;
  GenerationState state = GenerationState::Ready;
  Bytes bytes = 0, allocated = 0;  // of file content; on the disk
  std::uint64_t files = 0, inodes = 0;
  std::string hash;
  std::string damage;  // what a verification found; empty: nothing
  WallTime staged_at, last_used;
  double stage_seconds = 0;             // what staging all of it took, or would have; 0: not known
  std::optional<WallTime> scrubbed_at;  // when it was last read back whole and compared
  WallTime good_at;  // as published: when the earliest of its files was written or read back
  std::uint64_t source_generation = 0;  // see Source::generation
  bool is_doubtful = false;             // see Source::is_doubtful
  SourceState source;                   // that it was last found equal to
  std::optional<BytesFrom> from;        // none: not known

  bool is_sound() const { return damage.empty() && !is_doubtful; }
};

// Space that a copy in progress was promised: all that it will take, written or not. Void when the process
// that answers for it has ended.
struct Reservation {
  std::string dataset;
  Bytes bytes = 0;
  std::uint64_t inodes = 0;
  ProcessId process;
  std::uint64_t task = 0;  // the staging that it was made for, by the daemon's count
};

class Catalog {
 public:
  // Makes the folder and the file where there are none.
  static Result<std::unique_ptr<Catalog>> open(const std::filesystem::path& state_dir);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Which cache folder this catalog is about; empty until it is set.
  Result<std::string> cache_id();
  Result<> set_cache_id(const std::string& id);

  // A number that no generation of the dataset had before.
  Result<std::uint64_t> next_generation(const std::string& dataset);
  Result<> put(const GenerationRow& row);            // adds or replaces
  Result<std::vector<GenerationRow>> generations();  // by dataset, newest first
  // `source_generation` 0: as it is.
  Result<> touch(const std::string& dataset, std::uint64_t generation, WallTime used_at,
                 std::uint64_t source_generation = 0);
  Result<> note_source(const std::string& dataset, std::uint64_t generation, const SourceState& source);
  // A later generation shares so much of its content: evicting it gives back that much less.
  Result<> note_shared(const GenerationRow& row, Bytes shared);
  // What a verification found; empty damage: it is what it should be.
  Result<> set_scrubbed(const std::string& dataset, std::uint64_t generation, const std::string& damage,
                        WallTime at);

  // Marks generations, all or none, so that nobody leases them any more. Refused, naming the holders, while a
  // live lease is on one of them that is not soft.
  Result<> begin_eviction(const std::vector<GenerationRow>& rows, WallTime now);
  Result<> remove(const std::string& dataset, std::uint64_t generation);  // and its leases

  // What is wrong with a dataset's folders, by their name (see folder_name). An empty sentence: nothing.
  Result<> set_trouble(const std::string& key, const std::string& what);
  Result<std::map<std::string, std::string>> troubles();

  // NotFound if the generation is not there or being evicted, or as one that waits for its dataset
  // (generation 0). An id that is there already is renewed.
  Result<> add_lease(const Lease& lease);
  Result<Change> remove_lease(const std::string& id);
  Result<std::vector<Lease>> leases();

  Result<> reserve(const Reservation& reservation);  // adds or replaces
  Result<> drop_reservation(const std::string& dataset);
  // Those of tasks up to `newest` that are not in progress: what was reserved later is not known to be over.
  Result<> drop_ended_reservations(const std::vector<std::uint64_t>& in_progress, std::uint64_t newest);
  Result<std::vector<Reservation>> reservations();  // those that are not void

 private:
  struct Database;
  explicit Catalog(std::unique_ptr<Database> database);
  Result<> add_processes(std::vector<Lease>& leases);  // `leases`: by id
  std::unique_ptr<Database> database_;
};

}  // namespace spark::staging
