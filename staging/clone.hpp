// Content that is on the copy's file system already: its blocks, or its name, are shared instead of copied.
#pragma once

#include "base/result.hpp"
#include "staging/copy_context.hpp"
#include "staging/resume.hpp"

namespace spark::staging {

// Makes the empty file's content the source's blocks. False where the file system can't: nothing was changed.
bool share_blocks(int copy, int source);

// Whether the two trees are on one file system that does it, found out with two files without names.
bool can_share_blocks(const Tree& source, const Tree& copy);

// An earlier copy of the same source, whole: a generation before, or what a copy will replace.
struct Previous {
  Tree copy;
  std::filesystem::path manifest;
};

// Takes over every file that did not change since, sharing its blocks, or as a further name of the same file.
// Its entry gets its hash and counts as finished. What is not as its manifest says is left to be copied.
Result<> take_unchanged(const CopyContext& context, const Previous& previous, std::vector<Entry>& entries,
                        Resumed& resumed);

}  // namespace spark::staging
