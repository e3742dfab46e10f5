// A model's files in a folder, whatever program downloaded them, and the record of the copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/models/model_options.hpp"
#include "staging/models/published_file.hpp"

namespace spark::staging {

// Of a copy; in its manifest and, without digests, in the catalog.
struct ModelRecord {
  std::string name;      // see ModelOptions
  std::string revision;  // the commit; empty if the layout does not tell it
  // The folder in the copy that jobs get. In a cache of Hugging Face, the snapshot.
  std::string entry_point;
  // The folder of the model in the copy if programs can use the copy as a cache of Hugging Face:
  // "models--ORG--NAME". Empty also if the copy itself is that folder.
  std::string hub_folder;
  ModelCheck check = ModelCheck::None;
  std::string expect;                                // the pin that the copy was compared with
  std::string pin;                                   // of the copy; empty if not all of its files were read
  std::uint64_t sha256 = 0, git_sha1 = 0, none = 0;  // files, by the digest that was checked
  std::uint64_t absent = 0;                          // files of the revision that were not downloaded
  std::vector<PublishedFile> digests;                // their paths are in the copy

  bool satisfies(const ModelOptions& wanted) const;
};

std::string to_text(const ModelRecord& record);
// Without the digests.
std::string summary_text(const ModelRecord& record);
// None if the text is empty, or not of this version.
std::optional<ModelRecord> parse_model_record(std::string_view text);

struct Model {
  Walked walked;
  std::string ref;  // path of the file that names the revision; see write_ref(). Empty if there is none
  ModelRecord record;
};

// Where a tree has to begin for a source at `path`: a folder models--ORG--NAME, or its snapshot, belongs to
// the cache above it. `revision`: of the snapshot, if the path names one.
struct ModelPlace {
  std::filesystem::path path;
  std::string revision;
};
ModelPlace place_of_model(const std::filesystem::path& path);

// The entries of the copy. NotFound if the model or its revision is not there; Mismatch if a file is missing,
// incomplete, or behind a link that leaves the cache. `commit`: see find_hub_snapshot.
Result<Model> walk_model(Tree& tree, const ModelOptions& wanted, const StopFlag& stop,
                         const std::string& commit = {});

std::string_view to_string(ModelCheck check);
ModelCheck model_check_of(std::string_view word);

}  // namespace spark::staging
