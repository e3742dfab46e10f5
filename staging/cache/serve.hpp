// Access to the cache's source, and the checks whether the newest copy of a dataset equals the source's
// current content and can be served.
#pragma once

#include <optional>

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {

// The path that jobs get of a copy, published or about to be, and its model.
struct ForJobs {
  std::filesystem::path path;
  std::optional<ModelInCache> model;
};
ForJobs for_jobs(const CacheFolder& folder, const GenerationRow& row);

// The source's tree, on the required file system; a Tree without a folder if the source is away.
Result<Tree> open_source(const Source& source);

// Called after the last read, before `hash` is published: checks that all reads saw one state of the source.
Result<> check_one_state(const Source& source, const CopyOptions& options, const std::string& hash);

// Refused if the source has become empty, or is on another file system than when its last copy was made.
Result<> check_place(CacheStore& store, const Source& source, const Tree& tree, const Walked& walked,
                     const CopyOptions& options, const std::vector<GenerationRow>& ready);

// Identifies one state of a volume and the part of it that belongs to the dataset, independently of the host
// and its mount point; empty if the source has no state.
std::string state_key_of(const Source& source, const CopyOptions& options);

// The source's state, and the part of it that belongs to the dataset. Its key is empty if the source may be
// changed by others, or its copy by a job, without a trace.
SourceState state_of(const Source& source, const CopyOptions& options, const CacheConfig& config);

// Constant time: serves the copy if it is known to equal that state and the source is still in that state.
std::optional<Staged> serve_same_state(CacheStore& store, const Source& source, const SourceState& state,
                                       const GenerationRow& row, const Monitor& monitor);

// Serves the copy if its metadata shows that it is complete and it is the one that other hosts have.
std::optional<Staged> serve_same_content(CacheStore& store, const Source& source, const GenerationRow& row,
                                         const Monitor& monitor, const StopFlag& stop);

// Serves the copy if its metadata shows that it is complete and it was made from the entries that were
// walked. May empty `walked`.
std::optional<Staged> serve_same_entries(CacheStore& store, const Source& source, const Tree& tree,
                                         const GenerationRow& row, Walked& walked, const Monitor& monitor,
                                         const StopFlag& stop);

// For the next request. A failure becomes a warning in `staged`.
void note_state(CacheStore& store, Staged& staged, SourceState state, const WalkNotes& notes);

}  // namespace spark::staging
