// Reads files and compares them with digests that others published.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {

// What one reading of a file has found.
struct FileSums {
  std::string sha256;
  Digest content;  // as in a manifest
};

// Mismatch names the first files that differ or are missing. A file with an empty digest is only read.
// `sums`: gets those of each file, in their order, also with a Mismatch.
Result<> compare_digests(const Tree& copy, const std::vector<PublishedDigest>& digests,
                         const CopyOptions& options, Monitor& monitor, const StopFlag& stop,
                         std::vector<FileSums>* sums = nullptr);

}  // namespace spark::staging
