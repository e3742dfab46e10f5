// The parts of an earlier attempt in the partial area that this attempt can use.
#pragma once

#include <map>
#include <vector>

#include "staging/copy/copy_file.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct Resumed {
  std::vector<bool> finished;  // by index of the walked entry: the partial copy has the complete file
  // An earlier published copy has the file (see find_unchanged), whether finished or not.
  std::vector<bool> unchanged;
  std::map<std::size_t, KnownPieces> begun;  // files with some finished pieces
  Bytes bytes = 0;                           // of content, without unchanged files

  bool has(std::size_t entry) const { return finished[entry] || begun.contains(entry); }
};

// Files in the partial area with the size, times and inode of the current source. Entries of finished files
// get their hashes.
Resumed resume(const PartialArea& area, Entries& entries);

}  // namespace spark::staging
