// Content that is on the copy's file system already: its blocks, or its name, are shared instead of copied.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

// Makes the empty file's content the source's blocks. False where the file system can't: nothing was changed.
bool share_blocks(int copy, int source);

// Whether the two trees are on one file system that does it, found out with two files without names.
bool can_share_blocks(const Tree& source, const Tree& copy);

// An earlier copy of the same source, whole: a generation before, or what a copy will replace.
struct Previous {
  Tree copy;
  std::filesystem::path manifest;
  std::uint32_t good_at = 0;    // of all of it: when it was last read back; 0: never
  std::uint32_t made_at = 0;    // of files whose own time its manifest does not have; 0: not known
  bool may_share_files = true;  // nobody can write to them: a further name of a file is as good as a copy
};

// Marks the files that did not change since and are still as they were copied then; they get their hashes.
// Also those that an earlier attempt had taken over into the partial area: they are finished as well.
void find_unchanged(const Previous& previous, const PartialArea& area, Entries& entries, Resumed& resumed);

// Takes those over, if there is a previous copy: sharing their blocks, or as a further name of the same file.
// What can't be is no longer marked, and is to be copied.
Result<> take_unchanged(const CopyContext& context, const std::optional<Previous>& previous,
                        const Entries& entries, Resumed& resumed);

}  // namespace spark::staging
