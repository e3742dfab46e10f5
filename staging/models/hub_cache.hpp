// A model in a cache of Hugging Face (huggingface_hub, docs/source/en/guides/manage-cache.md), of any
// version: a snapshot's files are symlinks to the model's blobs, or files; from 1.32 on a blob may be a
// symlink to a payload that all models share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {

struct HubSnapshot {
  std::string folder;  // of the model, in the tree: "models--ORG--NAME"; empty means the tree itself
  std::string ref;     // that names the commit: "main"; empty if the user named the commit
  std::string commit;  // 40 hexadecimal digits

  std::string path() const;  // of the snapshot, in the tree
};

// The snapshot of `model` ("ORG/NAME") that `revision` names, a ref or a commit. The tree is a cache, or the
// folder of that model; no value if it is neither. NotFound if the cache has no such model or revision.
Result<std::optional<HubSnapshot>> find_hub_snapshot(const Tree& tree, const std::string& model,
                                                     const std::string& revision);

// What its publisher says of a file.
struct PublishedFile {
  std::string path;  // below the snapshot
  Bytes size = 0;    // 0: not known
  std::string hex;   // SHA-256 (64 digits), or git's SHA-1 of a blob (40 digits); empty: not known
  std::string told_by;
};

struct HubModel {
  Walked walked;                         // without symlinks, and with nothing but this snapshot and the ref
  std::vector<PublishedFile> published;  // of the files walked, in the order of their paths
  std::vector<std::string> absent;       // files of the commit that are not here; none if no list of them is
};

// `include`: patterns for the path below the snapshot, or the file's name; none means all files. Mismatch if
// a file's payload is missing, or its download has not ended.
Result<HubModel> walk_hub_snapshot(Tree& tree, const HubSnapshot& snapshot,
                                   const std::vector<std::string>& include, const StopFlag& stop);

}  // namespace spark::staging
