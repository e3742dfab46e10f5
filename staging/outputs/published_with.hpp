// Compares a published checkpoint with its source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {

// What is_published_with() reads to compare files that several hosts wrote, of which the checkpoint has one
// host's. Large ones take long: they are read last, and only if all else is the same.
enum class Reads { Small, All };
struct Comparing {
  Reads reads = Reads::Small;
  const CopyOptions& options;
  const ProgressSink& progress;
  const StopFlag& stop;
};

// Whether the checkpoint is published with everything that `source` now holds.
Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const Comparing& comparing);

// Whether the published checkpoint has the state of `source` as TreeTotals::written has it, so that other
// permissions or hard links do not count.
Result<bool> has_state_of(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                          const StopFlag& stop);

// The copy published at `path`, if it is whole and its source was in this state (TreeTotals::written):
// unchanged, whatever has become of the source since.
std::optional<CopyReport> published_in_state(const std::filesystem::path& path, std::int64_t written);

// The first file of the copy published at `path` that `source` no longer has, if it is of the same save: an
// interrupted deletion leaves such a one. Empty if there is none.
Result<std::string> lost_file(const std::filesystem::path& path, const std::filesystem::path& source);

// The source of the copy published at `path`, if it is another path than `source`. Refused if that is another
// source, unless the caller accepts it: names of jobs in the names of its folders may differ, since a job's
// folder has another one each time, and shards that were joined are replaced by what has all their files.
Result<std::string> replaced_source(const std::filesystem::path& path, const std::filesystem::path& source,
                                    bool accepts_another);

}  // namespace spark::staging
