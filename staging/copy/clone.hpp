// Content that is already on the copy's file system: it is shared (reflink or hard link) instead of copied.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

// Makes the empty file share the source's blocks. False if the file system can't; then nothing was changed.
bool share_blocks(int copy, int source);

// Whether both trees are on one file system that can share blocks; tested with two unnamed files.
bool can_share_blocks(const Tree& source, const Tree& copy);

// An earlier complete copy of the same source: an older generation, or the copy that will be replaced.
struct Previous {
  Tree copy;
  std::filesystem::path manifest;
  std::uint32_t good_at = 0;    // when the whole copy was last read back; 0 means never
  std::uint32_t made_at = 0;    // for files without a time of their own in its manifest; 0 means unknown
  bool may_share_files = true;  // its files are read-only for jobs, so a hard link is as good as a copy
  std::vector<bool> equal{};    // by walked entry: see Compared
};

// Marks the files that have not changed in the source or in the earlier copy since it was made; they get
// their hashes. Includes files that an earlier attempt shared into the partial area: they are finished as
// well.
void find_unchanged(const Previous& previous, const PartialArea& area, Entries& entries, Resumed& resumed);

// Shares the marked files if there is a previous copy: by their blocks, or by a hard link. Files that can't
// be shared lose their mark and have to be copied.
Result<> take_unchanged(const CopyContext& context, const std::optional<Previous>& previous,
                        const Entries& entries, Resumed& resumed);

}  // namespace spark::staging
