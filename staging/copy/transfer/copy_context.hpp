// Shared by all files of a run, with the checks on a file of the source.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/partial/journal.hpp"
#include "staging/copy/transfer/copy_notes.hpp"
#include "staging/copy/transfer/first_error.hpp"
#include "staging/files/io/drive_share.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

class Viewer;

// Functions are called from any thread.
struct CopyContext {
  const Tree* source = nullptr;
  const Tree* copy = nullptr;
  const StopFlag* stop = nullptr;
  RunEnd* end = nullptr;
  Throttle* throttle = nullptr;
  DriveShare* share = nullptr;  // of the source's drive; none means that other users of the drive are ignored
  Counters* counters = nullptr;
  Journal* journal = nullptr;
  CopyNotes* notes = nullptr;
  Viewer* viewer = nullptr;  // see CopyOptions
  // With a viewer: of files that can't be copied. The others are copied all the same, then the run fails.
  FirstError* left_out = nullptr;
  SteadyTime walked_at{};      // not before the walk's end
  bool has_source = true;      // false: the source must not be accessed, see CopyOptions::is_source_away
  bool flush_each = false;     // if one syncfs at the end is not known to be enough
  bool shares_blocks = false;  // the copy's file system can share the source's blocks
  // Whether a file's content is right, once all of it is written; false: the file is read again. Empty means
  // right.
  std::function<bool(const Entry&, const Digest&)> is_right;
  // Before the content of a large file's copy is discarded, because the file changed or its content is wrong.
  std::function<void(const Entry&)> discards;
  std::function<void(Bytes)> moved;                                        // of large files
  std::function<void(const std::string& path, Bytes offset)> before_read;  // tests change the source here

  // Whether the run has to end: the user stopped it, or another thread failed, or the viewer's check did. As
  // a Result: Cancelled, or the viewer's error.
  bool is_stopped() const;
  Result<> check_stop() const;
  void settle(const Entry& entry) const;  // of the walk
  // Waits for the throttle. `is_urgent`: asked meanwhile whether a reader waits for these bytes; empty: none.
  Result<> may_read(std::string_view path, Bytes offset, Bytes bytes,
                    const std::function<bool()>& is_urgent = {}) const;
};

// Updates the entry from the open file.
void update(Entry& entry, int file, const struct stat& info, const Tree& tree);

// Whether the file still equals the entry. Asks the file's server, because an NFS client may answer from
// cached attributes. No value if that can't be determined; errno has the reason.
std::optional<bool> is_unchanged(const Entry& entry, int fd);

// Unsupported if a file with the size 0 has data: its size is not known before it is read.
Result<> check_empty(const Entry& entry, int fd, const Tree& tree);

// Before a file is read: waits until a later change of it would have another ctime. `seen_at`: when it was
// read.
void settle(std::int64_t ctime_ns, SteadyTime seen_at, const std::function<bool()>& is_stopped);

}  // namespace spark::staging
