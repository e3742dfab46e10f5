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

namespace spark::staging {

struct TreeTotals {
  std::int64_t changed_ns = 0;  // the newest mtime or ctime of anything in it
  std::int64_t written_ns = 0;  // the newest mtime: a chmod, chown or hard link leaves it as it was
  Bytes bytes = 0;              // of regular files
  std::uint64_t entries = 0;    // it, and everything in it
  std::string unreadable;       // path of something in it that this user may not read; empty means none
  std::string broken_link;      // of a symlink to nothing, or to something outside; empty means none
};

// Of a file or folder, without following links. A file that disappears meanwhile is no error: the next call
// sees the rest.
TreeTotals totals_of(const std::filesystem::path& path);

// Mismatch if neither the source's TreeTotals::changed_ns nor its written_ns, which counts for a held one, is
// that of when it was found complete.
Result<> check_still_complete(const Tree& source, std::int64_t complete_at_ns);

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
