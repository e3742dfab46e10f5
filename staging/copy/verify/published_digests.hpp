// The SHA-256 digests that a dataset's own files tell of its files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

struct PublishedDigest {
  std::string path;  // of the file, below the root; raw bytes, and not proven to be a safe path
  std::string sha256;
  std::string told_by;  // path of the file that says so, or of the file itself where its name says it
};

// Of these kinds:
// - SHA256SUMS, sha256sum.txt, NAME.sha256 and the like, as sha256sum(1) writes and reads them, BSD's too;
// - Hugging Face's cache: large files' names in blobs/ are their digests;
// - Hugging Face's download folders: .cache/huggingface/download/PATH.metadata has it in its second line
//   (huggingface_hub, _local_folder.py and file_download.py, of 2025);
// - Git LFS: names in .git/lfs/objects.
// NotFound if there are none.
Result<std::vector<PublishedDigest>> published_digests(const Tree& copy, ManifestReader& manifest);

// The same NotFound, asked of a source before it is copied for nothing.
Result<> require_published_digests(const Tree& tree, const Entries& entries);

// A line of a sums file: nothing if it is none, such as a comment or a signature's.
struct SumLine {
  std::string name;  // empty in NAME.sha256 without one
  std::string sha256;
};
std::optional<SumLine> parse_sum_line(std::string_view line);

bool is_sums_file(std::string_view path);

}  // namespace spark::staging
