// Whether a copy's files match their publishers' SHA-256 digests.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

// Reads and compares every file that has a digest in the set (see published_digests). Returns the number of
// digests. Mismatch names the first files that differ or are missing; NotFound if no file in the set has a
// digest. Models among them have to be whole, too, as their own files tell (find_model_faults).
Result<std::uint64_t> check_digests(const std::filesystem::path& copy, const std::filesystem::path& manifest,
                                    const CopyOptions& options, Monitor& monitor, const StopFlag& stop);
// Of a folder that may be read through followed links.
Result<std::uint64_t> check_digests(const Tree& tree, const std::filesystem::path& manifest,
                                    const CopyOptions& options, Monitor& monitor, const StopFlag& stop);

}  // namespace spark::staging
