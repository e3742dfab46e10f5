// A source as the cache looks at it, and whether the newest copy of a dataset is what it holds now, so that
// it is served as it is.
#pragma once

#include <optional>

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {

// Its tree, on the file system that it has to lie on; one that nothing can be read of while it is away.
Result<Tree> open_source(const Source& source);

// After the last read, before `hash` is published: it is one state of the source.
Result<> check_one_state(const Source& source, const CopyOptions& options, const std::string& hash);

// One state of a volume and what of it belongs to the dataset, whatever the host and its mount point; empty
// where nothing names the source's state.
std::string state_key_of(const Source& source, const CopyOptions& options);

// The state that `source` is in, and what of it belongs to the dataset. Its key is empty where others may
// change the source, or a job its copy, without anything that would tell.
SourceState state_of(const Source& source, const CopyOptions& options, const CacheConfig& config);

// In constant time: if the copy is known to equal that state and the source is still in it.
std::optional<Staged> serve_same_state(CacheStore& store, const Source& source, const SourceState& state,
                                       const GenerationRow& row, const Monitor& monitor);

// If the copy is whole, by its metadata, and what was walked is what it was made from. May empty `walked`.
std::optional<Staged> serve_same_entries(CacheStore& store, const Source& source, const GenerationRow& row,
                                         Walked& walked, const Monitor& monitor, const StopFlag& stop);

// For the next request. What goes wrong is a warning of what is served.
void note_state(CacheStore& store, Staged& staged, SourceState state, const WalkNotes& notes);

}  // namespace spark::staging
