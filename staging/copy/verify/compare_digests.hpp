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

namespace spark::staging {

// Mismatch names the first files that differ or are missing. A file with an empty digest is only read.
// `sha256`: gets the SHA-256 of each file, in their order.
Result<> compare_digests(const Tree& copy, const std::vector<PublishedDigest>& digests,
                         const CopyOptions& options, Monitor& monitor, const StopFlag& stop,
                         std::vector<std::string>* sha256 = nullptr);

}  // namespace spark::staging
