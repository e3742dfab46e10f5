// The cache's persistent state: the generations of each dataset, and their leases. SQLite (WAL,
// synchronous=FULL) in the state folder; several processes may have it open. Every change is durable when the
// call returns. An unreadable catalog is an error, never an empty one. One thread at a time uses it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// One state of a source, and the part of it that belongs to the dataset.
struct SourceState {
  std::string key;    // see state_of(); empty means unknown
  std::string notes;  // WalkNotes of that state, as text
};

// The sources of a copy's content, without the part shared with an earlier copy.
struct BytesFrom {
  Bytes volume = 0, peers = 0;
};

// One generation of a dataset, for the catalog and for the list of the cache.
struct CopyFacts {
  std::uint64_t generation = 0;
  Bytes bytes = 0;  // of file content
  std::uint64_t files = 0;
  std::string hash;
  // Found in this copy by a verification; empty means none. Not of the catalog: see DamageRecords::add_to.
  std::string damage{};
  WallTime staged_at, last_used;
  std::optional<WallTime> scrubbed_at;  // when the whole copy was last read back and compared; none: never
  WallTime good_at;                     // when published: when its oldest file was written or read back
  // The copy was last found equal to this one; see Source::generation.
  std::uint64_t source_generation = 0;
  bool is_doubtful = false;       // see Source::is_doubtful
  std::optional<BytesFrom> from;  // none means unknown
  std::string definition{};       // see Source::definition
};

struct GenerationRow : CopyFacts {
  std::string dataset;
  GenerationState state = GenerationState::Ready;
  Bytes allocated = 0;  // on the disk
  std::uint64_t inodes = 0;
  bool is_suspect = false;   // not of the catalog, as `damage`
  double stage_seconds = 0;  // time to stage all of it, measured or estimated; 0 means unknown
  SourceState source;        // the copy was last found equal to this state
  std::string model{};       // of a model: its ModelRecord as text, without digests

  bool is_sound() const { return !is_suspect && !is_doubtful; }
};

// Space reserved for a copy in progress: all that the copy will take, whether written or not. It ends with
// the process that it belongs to.
struct Reservation {
  std::string dataset;
  Bytes bytes = 0;
  std::uint64_t inodes = 0;
  ProcessId process;
  std::uint64_t task = 0;  // number of its staging in the daemon's count
};

// The source of a dataset's newest copy.
struct CopiedFrom {
  std::string source, file_system;  // see ManifestHeader
  bool had_files = false;           // or symlinks
};

// A new catalog is empty: the cache's copies are in it once the cache was recovered.
enum class IfMissing { Make, Fail };

// Whether the catalog's content is wrong. A drive that fails, or a lock, proves nothing.
bool is_unusable_catalog(const Error& error);

class Catalog {
 public:
  // If it is missing, makes the folder and the file, or fails (Unavailable, ENOENT). With a full drive it
  // stays as it is now, and each change fails with NoSpace: open it again.
  static Result<std::unique_ptr<Catalog>> open(const std::filesystem::path& state_dir,
                                               IfMissing if_missing = IfMissing::Make);
  ~Catalog();

  bool is_current() const;  // neither that one, nor of a file that was moved away: else open it again

  // ID of the cache folder that belongs to this catalog; empty until it is set.
  Result<std::string> cache_id();
  // Empty: it belongs to the next cache that opens it. Copies that are forgotten take their leases with them;
  // their numbers are not used again.
  enum class Copies { Known, Forgotten };
  Result<> set_cache_id(const std::string& id, Copies copies = Copies::Known);
  // Runs `work` while no other process changes the catalog; an error undoes its changes.
  Result<> exclusively(const std::function<Result<>()>& work);

  // A number that no generation of the dataset has had.
  Result<std::uint64_t> next_generation(const std::string& dataset);
  // Adds or replaces, in several changes: see exclusively(). Leases without a scheduler's job that wait for
  // the dataset become leases on the row. `from` is kept when the dataset's copies are evicted; none: as it
  // is known.
  Result<> put(const GenerationRow& row, const CopiedFrom& from = {});
  Result<CopiedFrom> copied_from(const std::string& dataset);  // of an unknown dataset: empty
  Result<std::vector<GenerationRow>> generations();            // by dataset, newest first
  // `source_generation` 0 and an empty definition leave the stored ones unchanged.
  Result<> touch(const std::string& dataset, std::uint64_t generation, WallTime used_at,
                 std::uint64_t source_generation = 0, const std::string& definition = {});
  Result<> note_source(const std::string& dataset, std::uint64_t generation, const SourceState& source);
  // The bytes that evicting the row frees, while later generations share a part of its content.
  Result<> set_allocated(const std::string& dataset, std::uint64_t generation, Bytes allocated);
  Result<> set_scrubbed(const std::string& dataset, std::uint64_t generation, WallTime at);

  // Marks generations, all or none, so that they can't be leased any more. Refused, naming the holders, while
  // one of them has a live lease, here or in `beside`, that is not soft.
  Result<> begin_eviction(const std::vector<GenerationRow>& rows, WallTime now,
                          const std::vector<Lease>& beside = {});
  Result<> end_eviction(const std::string& dataset, std::uint64_t generation);  // it stays
  // Leases stay for a copy that the cache did not delete: since a move of the cache their holders may have it
  // in the old folder, which is not deleted while anything is leased.
  enum class Holders { End, Stay };
  Result<> remove(const std::string& dataset, std::uint64_t generation, Holders holders = Holders::End);

  // Problems with a dataset's folders, keyed by folder name (see folder_name). An empty string clears the
  // entry.
  Result<> set_trouble(const std::string& key, const std::string& what);
  Result<std::map<std::string, std::string>> troubles();

  // NotFound if the generation does not exist or is being evicted. Generation 0 is a lease that waits for its
  // dataset; it needs none. A lease with an existing ID is renewed.
  Result<> add_lease(const Lease& lease);
  Result<Change> remove_lease(const std::string& id);
  Result<std::vector<Lease>> leases();

  Result<> reserve(const Reservation& reservation);  // adds or replaces
  Result<> drop_reservation(const std::string& dataset);
  // Drops reservations of tasks up to `newest` that are not in progress; the state of later tasks is unknown.
  Result<> drop_ended_reservations(const std::vector<std::uint64_t>& in_progress, std::uint64_t newest);
  Result<std::vector<Reservation>> reservations();  // without the ended ones

 private:
  struct Database;
  friend class DamageRecords;  // has a table of its own
  explicit Catalog(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace spark::staging
