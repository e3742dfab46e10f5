// Models where other programs than huggingface_hub's cache leave them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/models/model_options.hpp"
#include "staging/models/published_file.hpp"

namespace spark::staging {

struct FolderModel {
  Walked walked;         // without the program's own files
  std::string folder;    // of the model, in the tree; empty means the tree itself
  std::string revision;  // empty means that the layout does not tell it
  // Of the files walked, below the folder, in the order of their paths.
  std::vector<PublishedFile> published;
};

// A model of ollama in its folder of models: `manifests/HOST/NS/NAME/TAG`, and `blobs/sha256-HEX`, which it
// names. No value if the tree is no such folder; NotFound if it lacks the model; Mismatch if it lacks a blob.
Result<std::optional<FolderModel>> walk_ollama(Tree& tree, const ModelOptions& wanted, const StopFlag& stop);

// By their paths in such a folder.
bool is_manifest_of_ollama(std::string_view path);
bool is_blob_of_ollama(std::string_view path);

// The blobs that a manifest of ollama names, by their paths; Mismatch if it is none.
Result<std::vector<PublishedFile>> parse_ollama_manifest(std::string_view text);

// A model's folder, or OWNER/NAME in a cache of ModelScope or in LM Studio's folder: a download by
// `hf download --local-dir` or ModelScope, a clone of a git repository, or any folder with weights. No value
// if there is none; Mismatch if a file is missing, or its download has not ended.
Result<std::optional<FolderModel>> walk_model_folder(Tree& tree, const ModelOptions& wanted,
                                                     const StopFlag& stop);

// A file of `.cache/huggingface/download`: its lines are the commit, the ETag and the time of the download.
struct DownloadMetadata {
  std::string commit, hex;  // empty: not there, or no digest
};
DownloadMetadata parse_download_metadata(std::string_view text);

}  // namespace spark::staging
