// Makes a partial area's `data` equal to a walked source, and durable.
#pragma once

#include <string>
#include <vector>

#include "staging/copy_file.hpp"
#include "staging/monitor.hpp"
#include "staging/partial_area.hpp"
#include "staging/walk.hpp"

namespace spark::staging {

struct Filled {
  Manifest manifest;  // of the copy; what it is called is the caller's to fill in
  Bytes resumed_bytes = 0;
  std::vector<std::string> warnings;
};

struct FillJob {
  const Tree* source = nullptr;
  Walked walked;
  const PartialArea* area = nullptr;
  const CopyOptions* options = nullptr;
  const StopFlag* stop = nullptr;
  std::function<void(const std::string& path, Bytes offset)> before_read;  // see CopyContext
};

// Space has to be checked before: see check_space. On an error what is finished stays for the next attempt.
Result<Filled> fill(FillJob job, Monitor& monitor);

// Of the entries, those that an earlier attempt finished, with their hashes; sorted by path. Equal in size,
// times and inode to what is in the source now, and whole in the partial area.
std::vector<Entry> finished_before(const PartialArea& area, const std::vector<Entry>& entries);

// What a run reports of a copy, published or served.
CopyReport report_of(const Manifest& manifest, const Monitor& monitor);

// Bytes that one read or write moves: a multiple of every alignment, at most a hash piece.
Bytes usable_chunk(Bytes wanted);

}  // namespace spark::staging
