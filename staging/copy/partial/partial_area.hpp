// The private folder of a copy in progress, on the file system of its destination: one process at a time.
//   FOLDER/data      the data being copied    FOLDER/journal   its finished and flushed parts
//   FOLDER/manifest  of the complete copy, from just before publishing until just after
//   FOLDER/state     state of the source that is copied, if it has an identifier
//   FOLDER/size      see footprint_of_partial_lately()
//   FOLDER/.FOLDER.spark-mark  see OwnRest
//   FOLDER/replaced  the earlier copy, between the two steps of its replacement
//   FOLDER/lock      locked like the folder, for the processes of other hosts; has this host's name, and the
//                    IDs of its kernel's start and of its machine: several hosts may have one name
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/partial/own_rest.hpp"

namespace spark::staging {

// Whether another host has taken the folder over (PartialArea::check_held). A retry would compete with it.
bool was_taken_over(const Error& error);

class PartialArea {
 public:
  // Creates the folder, or takes over an existing one. Waits while another process has it, unless that
  // process was killed and can't exit. Unavailable if another host has it, which may take hours. Refused if
  // nothing proves that the folder is this user's partial copy (OwnRest).
  static Result<PartialArea> open(const std::filesystem::path& folder, const StopFlag& stop);
  // The same, but Unavailable immediately if another process has it.
  static Result<PartialArea> try_open(const std::filesystem::path& folder);

  // The same, but waits for `patience` at most.
  static Result<PartialArea> open_within(const std::filesystem::path& folder,
                                         std::chrono::milliseconds patience);

  // Without a lock, to read what is in it. NotFound, or Refused as above.
  static Result<OwnRest> look_at(const std::filesystem::path& folder);
  // The same, at what leave_behind() put in another place.
  static Result<OwnRest> look_at_left_behind(const std::filesystem::path& folder);

  // Puts a new folder in its place; the next process that opens it moves the old content there. The lock
  // stays with the old folder and with the process that can't release it.
  static Result<> leave_behind(const std::filesystem::path& folder);

  PartialArea(PartialArea&&) = default;
  PartialArea& operator=(PartialArea&&) = default;
  // Removes the folder if nothing but this area's own lock is in it; its content stays.
  ~PartialArea();

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path data() const { return folder_ / "data"; }
  std::filesystem::path journal() const { return folder_ / "journal"; }
  std::filesystem::path manifest() const { return folder_ / "manifest"; }
  std::filesystem::path replaced() const { return folder_ / "replaced"; }

  // An error for which was_taken_over() holds if another host is in the lock file: an NFS server gives up the
  // locks of a host that does not reach it. Unavailable if there is no lock file.
  Result<> check_held() const;
  // Called before this attempt changes or deletes data that an earlier one has finished. Empty: the copy has
  // no readers.
  std::function<void()> before_change{};
  // Deletes its content; the lock and the mark stay.
  Result<> clear();
  // Deletes data copied from a different state of the source; an empty `state` means unknown.
  Result<> keep_only(const std::string& state);

 private:
  explicit PartialArea(OwnRest rest)
      : rest_(std::move(rest)), place_(present_path(rest_.path())), folder_(rest_.folder()) {}
  // `other_host` is set if the error is that this host has the folder.
  static Result<PartialArea> acquire(const std::filesystem::path& folder, std::string& other_host);
  Result<> lock_among_hosts(std::string& other_host);
  Result<> take_what_was_left();
  bool has_own_lock_file() const;

  OwnRest rest_;                  // with a flock on the folder itself; released when the process ends
  std::filesystem::path place_;   // its path from the root folder on, as it was
  std::filesystem::path folder_;  // see held_path()
  UniqueFd host_lock_;            // on its file; none on a full local file system
  std::string written_;           // into its file; empty: nothing
};

}  // namespace spark::staging
