// Copies small files: several threads, each with some neighbours of a folder at a time, with the fewest
// calls.
#pragma once

#include <vector>

#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/io.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Files up to this size are read and written in one go each.
inline constexpr Bytes kSmallFile = kMiB;

// Whether it may be copied here: small, with no hole worth keeping.
bool is_small(const Entry& entry);

// Entries are sorted by path; they get their hashes. Gives those that need the long way (see copy_file): they
// changed meanwhile, or have attributes. What is written leaves the page cache again at once: written back
// some files later, then dropped.
Result<std::vector<Entry*>> copy_small_files(const CopyContext& context, const std::vector<Entry*>& files,
                                             unsigned threads, IoKind kind);

}  // namespace spark::staging
