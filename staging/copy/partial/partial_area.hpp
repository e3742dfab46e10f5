// The private folder in which a copy grows, on the file system of its destination: one process at a time.
//   FOLDER/data      what is being copied      FOLDER/journal   what of it is finished and flushed
//   FOLDER/manifest  of the whole, from just before publishing until just after
//   FOLDER/state     of the source that it is copied from, if that has a name
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"

namespace spark::staging {

class PartialArea {
 public:
  // Makes the folder, or takes over what is there; waits for another process that has it, but not for one
  // that was killed and can't die. Refused if it is not a folder of this user's alone.
  static Result<PartialArea> open(const std::filesystem::path& folder, const StopFlag& stop);
  // The same, but Unavailable at once if another process has it.
  static Result<PartialArea> try_open(const std::filesystem::path& folder);

  // The same, but waits so long for it.
  static Result<PartialArea> open_within(const std::filesystem::path& folder,
                                         std::chrono::milliseconds patience);

  // Puts another folder in its place, to which the next one who opens it moves what is in it. The lock stays
  // with the old one, and with whoever can't let go of it.
  static Result<> leave_behind(const std::filesystem::path& folder);

  PartialArea(PartialArea&&) = default;
  PartialArea& operator=(PartialArea&&) = default;
  ~PartialArea();  // takes an empty folder away; what is in it stays

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path data() const { return folder_ / "data"; }
  std::filesystem::path journal() const { return folder_ / "journal"; }
  std::filesystem::path manifest() const { return folder_ / "manifest"; }

  // Deletes what is in it.
  Result<> clear();
  // Deletes what was copied from another state of the source than this; empty: of no known state.
  Result<> keep_only(const std::string& state);

 private:
  PartialArea(std::filesystem::path folder, UniqueFd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  static Result<PartialArea> acquire(const std::filesystem::path& folder);
  Result<> take_what_was_left();

  std::filesystem::path folder_;
  UniqueFd lock_;  // flock on the folder itself; gone with the process
};

}  // namespace spark::staging
