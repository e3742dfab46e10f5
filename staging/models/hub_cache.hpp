// A model in a cache of Hugging Face (huggingface_hub, docs/source/en/guides/manage-cache.md), of any
// version: a snapshot's files are symlinks to the model's blobs, or files; from 1.32 on a blob may be a
// symlink to a payload that all models share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/models/published_file.hpp"

namespace spark::staging {

struct HubSnapshot {
  std::string folder;  // of the model, in the tree: "models--ORG--NAME"; empty means the tree itself
  std::string ref;     // that names the commit: "main"; empty if the user named the commit
  std::string commit;  // 40 hexadecimal digits

  std::string path() const;      // of the snapshot, in the tree
  std::string ref_path() const;  // empty if there is no ref
};

// "models--ORG--NAME"
std::string hub_folder_of(const std::string& model);
bool is_commit(std::string_view text);

// Whether it is beside the snapshots of the model's folder, which may be empty: a ref, a list of a commit's
// files, or a name of a file that the model does not have. Programs load none of these.
bool is_note_of_hub(std::string_view path, const std::string& folder);
// Of the snapshot, as HubSnapshot::path().
std::string snapshot_path(const std::string& folder, const std::string& commit);

// The snapshot of `model` ("ORG/NAME") that `revision` names, a ref or a commit. The tree is a cache, or the
// folder of that model; no value if it is neither. NotFound if the cache has no such model or revision.
// `commit`: that a ref is taken to name, whatever it names now; empty means that it is read.
Result<std::optional<HubSnapshot>> find_hub_snapshot(const Tree& tree, const std::string& model,
                                                     const std::string& revision,
                                                     const std::string& commit = {});

struct HubModel {
  // Without symlinks, and with nothing but this snapshot and what names it.
  Walked walked;
  // Of the files walked, below the snapshot, in the order of their paths.
  std::vector<PublishedFile> published;
  bool has_list = false;            // of the commit's files
  std::vector<std::string> absent;  // chosen files of that list that are not here
};

// The commit's files as `trees/COMMIT.json` lists them, by path: huggingface_hub 1.22 and later write it. No
// value if the text is no such list.
std::optional<std::map<std::string, PublishedFile>> parse_tree_list(std::string_view text,
                                                                    const std::string& told_by);

// Makes the ref at `path` in a copy name this commit: it may have moved, or may have been written with a line
// end, since the snapshot was chosen. Durable. No change if there is no such entry.
Result<> write_ref(const Tree& copy, Entries& entries, std::string_view path, const std::string& commit);

// `include`: patterns for the path below the snapshot, or the file's name; none means all files. Mismatch if
// a file's payload is missing, or its download has not ended.
Result<HubModel> walk_hub_snapshot(Tree& tree, const HubSnapshot& snapshot,
                                   const std::vector<std::string>& include, const StopFlag& stop);

}  // namespace spark::staging
