// The caller's options for a copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/outside_links.hpp"

namespace spark::staging {

class Exchange;
class Viewer;

// Whether modification times of files must equal the manifest's. On NFS they may differ: Linux's server sets
// the present time when it recalls a write delegation (nfsd, "freeze c/mtime updates with outstanding
// WRITE_ATTRS delegation").
enum class FileTimes { Compared, Ignored };

struct RateOptions {
  Bytes most = 0;  // bytes per second; 0 means no limit
  // Copy at the lowest rate that finishes by this time; none means at full speed.
  std::optional<SteadyTime> finish_by{};
  // In the idle I/O class, reads little from the source's drive while others use the drive.
  bool leaves_drive_to_others = false;
};

// An earlier copy at the destination, which is replaced only if it is unchanged.
struct EarlierCopy {
  // Ignored: a file with another time is unchanged if the copy's content equals the manifest's hashes.
  FileTimes times = FileTimes::Compared;
  // NFS can't exchange two names. Between the two steps neither the earlier copy nor the new one has the
  // name.
  bool replaced_in_two_steps = false;
  bool may_lack_its_name = false;  // the same, but only where it has to be
};

// Which earlier copies with files a copy replaces; others are Refused.
enum class Replaces {
  Anything,
  SameType,    // not a folder by a file, or the reverse
  SameSource,  // and not one of another source, nor if the source has become empty, or is on another file
               // system
};

struct CopyOptions {
  // Threads that copy small files, and the maximum for large files; 0 means from the CPUs.
  unsigned threads = 0;
  unsigned depth = 0;  // concurrent requests for large files; 0 means from the CPUs
  Bytes chunk = 0;     // bytes of one direct read or write; 0 means 4 MiB
  IoKind io = IoKind::Auto;
  RateOptions rate{};
  // Shell patterns for the path inside the dataset and for its last component.
  std::vector<std::string> exclude;
  OutsideLinks links = OutsideLinks::Keep;
  // The source must not be a symbolic link itself. Otherwise one is followed, because the user named it.
  bool refuses_linked_source = false;
  // The caller knows that the source rests: no wait until a change of a file would show in its coarse times.
  bool has_resting_source = false;
  // Copies a part of the source: these folders, see walk_folders. `exclude` and `links` are then ignored, and
  // needs_quiet_source does not apply. Empty means everything.
  std::vector<std::string> only;
  // The copy must be one state of the source: if any file changed since the walk, nothing is published
  // (Mismatch).
  bool needs_quiet_source = false;
  // TreeTotals::written of the source when the caller found it complete: Mismatch if it has changed by the
  // walk. None: not compared.
  std::optional<std::int64_t> complete_state{};
  EarlierCopy earlier{};
  Replaces replaces = Replaces::Anything;
  bool verify = false;  // before publishing, reads the copy back from the disk and compares
  bool sha256 = false;  // before publishing, checks the digests that the set has of its files
  // Owned by the caller until the copy ends. None means that everything is read from the source.
  Exchange* exchange = nullptr;
  Viewer* viewer = nullptr;  // the same; none means that nobody reads the copy before it is published
  std::uint64_t view = 0;    // the viewer's number
  // Does not read the source: Unavailable if the exchange does not get everything.
  bool is_source_away = false;
  Bytes keep_free = 0;  // bytes that must stay free on the destination's file system
};

}  // namespace spark::staging
