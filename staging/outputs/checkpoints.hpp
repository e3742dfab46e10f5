// The checkpoints that a job writes to a folder of this host: each entry of the folder is one, and an
// explicit rule says when it is complete. The markers are those that the frameworks leave
// (docs/stage-out.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::staging {

struct Completeness {
  enum class Rule {
    Rename,       // it has its final name: the job wrote it under a temporary one
    Dcp,          // torch.distributed.checkpoint: .metadata is there, and every file that it names
    HuggingFace,  // trainer_state.json is there, and every file that an index of weights names
    DeepSpeed,    // the file `latest` beside it names it, or a later one
    Marker,       // a file of that name is in it
  };
  Rule rule = Rule::Rename;
  std::string marker;
};

struct Checkpoint {
  std::string name;
  std::int64_t mtime_ns = 0;    // of the entry itself: when the job last added something to it
  std::int64_t changed_ns = 0;  // the newest change of anything in it
  Bytes bytes = 0;
  std::string incomplete;  // why it is not complete; empty: it is
};

// Newest first. Entries with a temporary name ("tmp-…", "….tmp", ".…", "….incomplete", "….partial"), symbolic
// links, and the files `latest` and `latest_checkpointed_iteration.txt` are no checkpoints. What changed in
// the last `settled` before `now` is incomplete.
Result<std::vector<Checkpoint>> list_checkpoints(const std::filesystem::path& folder,
                                                 const Completeness& completeness, WallTime now,
                                                 Duration settled);

// Deletes entries of a job's folder, each with one rename before anything of it is deleted, and what an
// interrupted call left. What is not there is no error.
Result<> remove_checkpoints(const std::filesystem::path& folder, const std::vector<std::string>& names);

enum class PointerKind { Link, File };  // a symbolic link; a file that has the name, as DeepSpeed reads it

// Makes `latest` in the folder lead to `name`, by one rename, durably. Refused: there is a `latest` of
// another kind, which is the job's own.
Result<> point_latest(const std::filesystem::path& folder, const std::string& name, PointerKind kind);

}  // namespace spark::staging
