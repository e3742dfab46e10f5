#include "staging/copy/need.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/files/space.hpp"
#include "staging/files/times.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

// Overhead of the file system: maps and checksums of the data (btrfs: 0.2 %), and for each entry its inode,
// its name, and its lines in the journal and the manifest.
constexpr Bytes kDataOfOneOverhead = 512, kOverheadOfEntry = kKiB;

}  // namespace

Footprint shared_of(const Entries& entries, const Resumed& resumed, Bytes block) {
  Footprint sum;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (resumed.unchanged[i]) sum.add(entries[i], block);
  }
  return sum;
}

Footprint footprint_of_partial(const std::filesystem::path& folder) {
  return footprint_of(folder / "data").value_or(Footprint{});
}

Result<Footprint> footprint_of(const std::filesystem::path& path) {
  const auto tree = open_tree(path);
  if (!tree && tree.error().kind == Errc::NotFound) return Footprint{};
  if (!tree) return tree.take_error();
  const auto sum = footprints_of({&*tree, 1}, kNeverStopped);
  if (!sum) return sum.take_error();
  return sum->front();
}

namespace {

// Kept in the partial area's file "size".
struct Counted {
  Footprint footprint;
  std::int64_t journal_ns = 0, at_s = 0;  // when the journal was written last, then; when it was counted
};

std::optional<Counted> counted_last(const std::filesystem::path& file) {
  const auto text = read_file(file);
  Counted counted;
  if (!text ||
      std::sscanf(text->c_str(), "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &counted.footprint.bytes,
                  &counted.footprint.inodes, &counted.journal_ns, &counted.at_s) != 4)
    return std::nullopt;
  return counted;
}

}  // namespace

Footprint footprint_of_partial_lately(const std::filesystem::path& folder, WallTime now, bool grows) {
  constexpr std::int64_t kLately = 60;
  struct stat journal {};
  const std::filesystem::path file = folder / "size";
  const bool has_journal = ::lstat((folder / "journal").c_str(), &journal) == 0;
  const std::int64_t journal_ns = has_journal ? nanoseconds(journal.st_mtim) : 0;
  const std::int64_t at_s = seconds_since_1970(now);
  if (const auto last = counted_last(file)) {
    const bool is_recent = grows && at_s >= last->at_s && at_s - last->at_s < kLately;
    if (is_recent || (has_journal && last->journal_ns == journal_ns)) return last->footprint;
  }
  const Footprint counted = footprint_of_partial(folder);
  if (counted.inodes == 0) return counted;
  const std::string text = std::to_string(counted.bytes) + " " + std::to_string(counted.inodes) + " " +
                           std::to_string(journal_ns) + " " + std::to_string(at_s) + "\n";
  // Not noted on a full drive: counted again the next time.
  static_cast<void>(write_file_atomically(file, text, 0600));
  return counted;
}

Need need_of(const Entries& entries, const Resumed& resumed, const PartialArea& area) {
  const Bytes block = block_of(area.folder());
  Footprint need, kept;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (resumed.finished[i]) {
      kept.add(entry, block);
    } else if (!resumed.unchanged[i]) {
      need.add(entry, block);
    }
  }
  const Bytes there = footprint_of_partial(area.folder()).bytes;
  const Bytes overhead = need.bytes / kDataOfOneOverhead + need.inodes * kOverheadOfEntry;
  return {need.bytes + overhead, need.inodes, there - std::min(there, kept.bytes)};
}

Result<> check_holes(const Entries& entries, const std::string& shown) {
  constexpr Bytes kMostZeros = 16 * kTiB, kMostTimes = 1000;
  Bytes size = 0, allocated = 0;
  for (const Entry& entry : entries) {
    if (!is_content(entry)) continue;
    size += entry.size;
    allocated += entry.allocated;
  }
  if (size <= kMostZeros || size / kMostTimes <= allocated) return {};
  return fail(Errc::Refused,
              "copying " + shown + ": its files have " + format_bytes(size) + ", of which only " +
                  format_bytes(allocated) + " are data and the rest are holes",
              "exclude the sparse files");
}

Result<> check_space(const Need& need, const std::filesystem::path& folder, Bytes keep_free) {
  auto space = space_of(folder);
  if (!space) return space.take_error();
  space->free += need.stale;
  const std::string where = shown_path(folder);
  if (need.bytes > space->free || space->free - need.bytes < keep_free) {
    const Bytes missing = need.bytes + keep_free - space->free;
    const std::string reserve =
        keep_free > 0 ? ", of which " + format_bytes(keep_free) + " have to stay free" : "";
    return fail(Errc::NoSpace,
                "the copy needs " + format_bytes(need.bytes) + " and " + where + " has " +
                    format_bytes(space->free) + " free" + reserve,
                "free " + format_bytes(missing) + " there, or choose another place");
  }
  if (need.inodes > space->inodes_free) {
    return fail(Errc::NoSpace,
                "the copy needs " + std::to_string(need.inodes) + " inodes and the file system of " + where +
                    " has " + std::to_string(space->inodes_free) + " left",
                "delete files there, or choose a file system with more inodes");
  }
  return {};
}

}  // namespace spark::staging
