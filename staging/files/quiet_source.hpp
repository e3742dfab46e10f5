// Whether a source stayed unchanged: since it was found complete, and between its walk and the last read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/files/outside_links.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

struct TreeTotals {
  std::int64_t changed_ns = 0;   // the newest mtime or ctime of anything in it
  std::int64_t modified_ns = 0;  // the newest mtime
  std::int64_t oldest_ns = 0;    // the oldest ctime
  bool is_from_earlier = false;  // a file was last changed before it was made: a clock was set back meanwhile
  // Identifies what was written: the names, sizes and mtimes of everything in it, without folders' mtimes.
  // The newest time alone stays the same if the clock was set back and a file is written again. A chmod,
  // chown, hard link or `touch` of a folder leaves it as it was. 0 if there is nothing.
  std::int64_t written = 0;
  // Identifies these very files in this state: also their inodes and ctimes, which no program can set. While
  // it stays, what was flushed once is on the drive. 0 if there is nothing.
  std::int64_t identity = 0;
  Bytes bytes = 0;            // of regular files
  std::uint64_t entries = 0;  // it, and everything in it
  std::string unreadable;     // path of something in it that this user may not read; empty means none
  std::string broken_link;    // of a symlink to nothing, or to something outside; empty means none
};

// Of a file or folder, without following links. A file that disappears meanwhile is no error: the next call
// sees the rest.
TreeTotals totals_of(const std::filesystem::path& path);
// TreeTotals::written of the source that the manifest is of, from where it is.
std::int64_t written_of(ManifestReader& manifest);

// Mismatch unless the source is as when it was found complete, or the request was accepted:
// TreeTotals::written, or in a request that version 0.2 has recorded, TreeTotals::changed_ns.
Result<> check_still_complete(const Tree& source, std::int64_t complete_state);

class QuietSource {
 public:
  QuietSource() = default;  // check() does nothing
  explicit QuietSource(const Entries& walked);

  // Walks the source again. Mismatch if a file was added, removed or changed since the first walk.
  Result<> check(const Tree& source, const std::vector<std::string>& exclude, OutsideLinks links,
                 const StopFlag& stop) const;

 private:
  std::optional<Digest> walked_;
};

}  // namespace spark::staging
