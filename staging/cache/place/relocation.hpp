// Takes a cache's copies to another folder, on any file system, so that at each moment the configured path
// leads to a whole cache: interrupted anywhere, it may be repeated.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/cache/cache.hpp"
#include "staging/copy/copy_with.hpp"

namespace spark::staging {

enum class Relocated {
  Renamed,       // on one file system: the old path is a link to the new one
  Copied,        // the old cache is unchanged, and in force until the configuration names the new one
  OldAbsent,     // the same, but nothing of that is in the other place, whose drive may not be mounted
  OldDeleted,    // the cache was in the new place already; what an earlier call copied is deleted there
  AlreadyThere,  // nothing was left to do
};

struct Relocation {
  Relocated how = Relocated::AlreadyThere;
  std::filesystem::path from;     // the other place; empty if AlreadyThere
  std::vector<std::string> left;  // "imagenet: it is damaged": datasets without a copy in the new place
  // By this call in the new place, where an earlier one copied them; if OldDeleted, last copies that can't be
  // had. And a sentence for each that stays.
  std::vector<Evicted> deleted;
  std::vector<std::string> kept;
  std::vector<Evicted> brought;  // copied by this call as only the old place had them, before it was deleted
  std::uint64_t datasets = 0;    // with a verified copy in the new place, when Copied
  Bytes bytes = 0;               // copied by this call; or freed, if OldDeleted
};

struct RelocationHooks {
  std::function<void(const std::string& dataset, const CopyProgress& progress)> progress;
  // Before anything is deleted in a place that has been in force: refuses it, or ends its read-only mount.
  std::function<Result<>(const std::filesystem::path& data)> stop_serving;
  // Before this process writes into the copies of the cache in force, which jobs see read-only.
  std::function<Result<>(const std::filesystem::path& data)> work_in;
  // With a process that is at work at the same place, as the daemon's recovery is for a moment.
  std::chrono::milliseconds patience{30'000};
  CopyHooks copy{};  // its step hook is also called after "filled", "entered", "carried", "emptied"
};

// Copies that only the old place has, when it is to be deleted: of each dataset the newest that can be read
// is brought over. Refused while one is damaged, unless they may be deleted.
enum class LastCopies { Brought, Deleted };

// Of each dataset the newest sound copy. Refused if `to` holds something else than a cache that a call has
// begun, or if a program has a file open that would be deleted. NoSpace before the first byte. The caller
// knows that nothing is being staged or evicted.
Result<Relocation> relocate(const CacheConfig& config, const std::filesystem::path& to,
                            const CopyOptions& options, const Clock& clock, const RelocationHooks& hooks,
                            const StopFlag& stop, LastCopies last = LastCopies::Brought);

}  // namespace spark::staging
