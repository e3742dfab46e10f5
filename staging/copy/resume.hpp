// What an earlier attempt left in the partial area, of use to this one.
#pragma once

#include <map>
#include <vector>

#include "staging/copy/copy_file.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct Resumed {
  std::vector<bool> finished;   // by the index of the walked entry: the partial copy has the whole file
  std::vector<bool> unchanged;  // an earlier, published copy has it (see find_unchanged); finished or not
  std::map<std::size_t, KnownPieces> begun;  // files of which it has some pieces
  Bytes bytes = 0;                           // of content, without what is unchanged

  bool has(std::size_t entry) const { return finished[entry] || begun.contains(entry); }
};

// Files equal in size, times and inode to what is in the source now, and there in the partial area. The
// entries of finished ones get their hashes.
Resumed resume(const PartialArea& area, Entries& entries);

// The entry with that path; `entries.size()` if there is none.
std::size_t index_of(const Entries& entries, std::string_view path);

}  // namespace spark::staging
