// The folder that a cache was copied from, while its copies are still there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"

namespace spark::staging {

// In place of the identity, while the rest is deleted: from then on it is no cache.
inline constexpr char kGivenUp[] = ".spark-stage-cache.moved";

// In the new folder, from before the first copy until the old one is deleted.
struct Mark {
  std::string id;              // of the cache; empty: there is no mark
  std::filesystem::path from;  // the old folder
  // The new folder has been the cache since: jobs may have its copies, and some may be in no other place.
  bool was_in_force = false;
};
Result<Mark> mark_in(const std::filesystem::path& folder);
Result<> write_mark(const std::filesystem::path& folder, const Mark& mark);

struct LeftBehind {
  std::filesystem::path from;  // empty: nothing was left there
  Bytes freed = 0;
  bool is_absent = false;  // nothing of a cache is there, as on a drive that is not mounted: the mark stays
};

struct Clearing {
  // Ends the read-only mount of the folder of copies, or refuses.
  std::function<Result<>(const std::filesystem::path& data)> stop_serving;
  // Afterwards, before the first copy is deleted: an error keeps them all.
  std::function<Result<>(const std::filesystem::path& from)> bring_last;
};

// Deletes the copies in the old folder that the mark names, if it has the identity of the cache in `cache`,
// which is in force; then the mark. Refused while a program has a file there open.
Result<LeftBehind> delete_left_behind(const std::filesystem::path& cache, const std::string& id,
                                      const Clearing& clearing, const StopFlag& stop);

}  // namespace spark::staging
