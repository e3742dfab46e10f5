// What all files of a run share, and how a file of the source is looked at.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/partial/journal.hpp"
#include "staging/files/io/drive_share.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

// Functions are called from any thread.
struct CopyContext {
  const Tree* source = nullptr;
  const Tree* copy = nullptr;
  const StopFlag* stop = nullptr;
  std::atomic<bool>* failed = nullptr;
  Throttle* throttle = nullptr;
  DriveShare* share = nullptr;  // of the source's drive; none: others on it are not heeded
  Counters* counters = nullptr;
  Journal* journal = nullptr;
  bool has_source = true;      // false: nothing of it may be touched, see CopyOptions::is_source_away
  bool flush_each = false;     // where one syncfs at the end is not known to be enough
  bool shares_blocks = false;  // the copy's file system can take blocks of the source's without copying
  std::function<void(const Entry&)> lost_attributes;
  // Whether a file's content, all of it written, is right; false: all of it is read again. Empty: it is.
  std::function<bool(const Entry&, const Digest&)> is_right;
  std::function<void(Bytes)> moved;                                        // of large files
  std::function<void(const std::string& path, Bytes offset)> before_read;  // tests change the source here

  // Whether the run has to end: the user's wish, or another thread's error. As a Result: Cancelled.
  bool is_stopped() const { return *stop || *failed; }
  Result<> check_stop() const;
  // Waits for the throttle.
  Result<> may_read(std::string_view path, Bytes offset, Bytes bytes) const;
};

// Brings the entry up to date: what the open file is now.
void update(Entry& entry, int file, const struct stat& info, const Tree& tree);

// Whether the file is still what the entry says, by its server's word: an NFS client would answer from
// attributes that it remembers. No value: errno says why it can't be told.
std::optional<bool> is_unchanged(const Entry& entry, int fd);

}  // namespace spark::staging
