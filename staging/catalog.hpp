// The cache's memory across restarts: which generations of which datasets are ready, and who leases them.
// SQLite (WAL, synchronous=FULL) in the state folder; several processes may have it open. Every change is
// durable when it returns. What can't be read is an error, never an empty catalog. One thread at a time uses
// it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

struct sqlite3;

namespace spark::staging {

enum class GenerationState { Ready, Evicting };

struct GenerationRow {
  std::string dataset;
  std::uint64_t generation = 0;
  GenerationState state = GenerationState::Ready;
  Bytes bytes = 0, allocated = 0;
  std::uint64_t files = 0;
  std::string hash;
  std::string damage;  // what a verification found; empty: nothing
  WallTime staged_at, last_used;
};

// Ends with its holder or its time, whichever comes first; the daemon removes it then.
struct Lease {
  std::string id;
  std::string dataset;
  std::uint64_t generation = 0;
  std::string holder;                // for people: "pid 4711 (python)", "slurm job 12"
  pid_t pid = 0;                     // 0: not bound to a process
  std::uint64_t pid_start_time = 0;  // field 22 of /proc/PID/stat: a process id alone comes back
  std::optional<WallTime> expires;   // none: with its process
};

// Whether it still holds: not expired, and its process runs.
bool is_live(const Lease& lease, WallTime now);

// Field 22 of /proc/PID/stat; none if there is no such process any more.
std::optional<std::uint64_t> process_start_time(pid_t pid);

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
  Result<> touch(const std::string& dataset, std::uint64_t generation, WallTime used_at);
  Result<> set_damage(const std::string& dataset, std::uint64_t generation, const std::string& damage);

  // Marks a generation so that nobody leases it any more. Refused, naming the holder, while a live lease is
  // on it.
  Result<> begin_eviction(const std::string& dataset, std::uint64_t generation, WallTime now);
  Result<> remove(const std::string& dataset, std::uint64_t generation);  // and its leases

  // NotFound if the generation is not there or being evicted. An id that is there already is renewed.
  Result<> add_lease(const Lease& lease);
  Result<Change> remove_lease(const std::string& id);
  Result<std::vector<Lease>> leases();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Catalog(std::unique_ptr<sqlite3, Close> database, std::string shown);

  std::unique_ptr<sqlite3, Close> database_;
  std::string shown_;
};

}  // namespace spark::staging
