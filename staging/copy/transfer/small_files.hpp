// Copies small files: several threads, each with several neighbours of a folder at a time, with as few system
// calls as possible.
#pragma once

#include <vector>

#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/copy/transfer/left_files.hpp"
#include "staging/files/io/io.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Files up to this size are read and written in one call each.
inline constexpr Bytes kSmallFile = kMiB;

// Whether the file may be copied here: small, and without a hole that is worth keeping.
bool is_small(const Entry& entry);

// Entries are sorted by path; they get their hashes. Returns the files that need copy_file: they changed
// meanwhile, or have attributes; `left` copies those that readers wait for, and is none without readers.
// Written data soon leaves the page cache: it is written back some files later, then dropped.
Result<std::vector<Entry*>> copy_small_files(const CopyContext& context, const std::vector<Entry*>& files,
                                             const ThreadRange& threads, IoKind kind,
                                             LeftFiles* left = nullptr);

}  // namespace spark::staging
