// The digests of a dataset's files that the dataset itself contains.
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
  std::string path;  // of the file, below the root; raw bytes, not checked to be a safe path
  std::string hex;   // SHA-256 (64 digits), or git's SHA-1 (40 digits)
  // Path of the file that contains the digest, or of the file itself if its name is the digest.
  std::string told_by;
};

// Supported sources:
// - SHA256SUMS, sha256sum.txt, NAME.sha256 and similar, as sha256sum(1) writes and reads them, BSD's too;
// - Hugging Face's cache: large files' names in blobs/ are their digests;
// - Hugging Face's download folders: the second line of .cache/huggingface/download/PATH.metadata
//   (huggingface_hub, _local_folder.py and file_download.py, of 2025);
// - Git LFS: names in .git/lfs/objects.
// NotFound if there are none.
Result<std::vector<PublishedDigest>> published_digests(const Tree& copy, ManifestReader& manifest);

// The same NotFound, checked on a source before it is copied.
Result<> require_published_digests(const Tree& tree, const Entries& entries);

}  // namespace spark::staging
