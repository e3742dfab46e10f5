// How a copy is made, as its caller may choose it.
#pragma once

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

struct CopyOptions {
  unsigned threads = 0;  // that copy small files, and at most for large ones; 0: from the CPUs
  unsigned depth = 0;    // requests under way for large files; 0: from the CPUs
  Bytes chunk = 0;       // of one direct read or write; 0: 4 MiB
  IoKind io = IoKind::Auto;
  Bytes max_rate = 0;                     // bytes per second; 0: no limit
  std::optional<SteadyTime> finish_by{};  // at the lowest rate with which all is copied by then; none: soon
  std::vector<std::string> exclude;  // shell patterns against the path inside the dataset and its last name
  OutsideLinks links = OutsideLinks::Keep;
  // A part of the source is copied: these folders, see walk_folders. `exclude` and `links` don't count then,
  // and needs_quiet_source is not for it. Empty: all of it.
  std::vector<std::string> only;
  // The copy is of one state of the source: if any file changed since the walk, nothing is published
  // (Mismatch).
  bool needs_quiet_source = false;
  // In the idle I/O class, little is read from the source's drive while others use it.
  bool leaves_drive_to_others = false;
  bool verify = false;  // read the copy back from the disk and compare before publishing
  bool sha256 = false;  // before publishing check the digests that the set itself has of its files
  Exchange* exchange =
      nullptr;  // the caller's, for as long as the copy takes; none: all is read from the source
  // Nothing is read from the source: Unavailable where the exchange does not get all of it.
  bool is_source_away = false;
  Bytes keep_free = 0;  // bytes of the destination's file system that have to stay free
};

}  // namespace spark::staging
