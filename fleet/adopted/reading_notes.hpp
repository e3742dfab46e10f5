// The files of an adopted folder that readings have finished: one that is interrupted, by a restart or by
// another configuration, is resumed with the others, and after a change only what has changed is read.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

struct ReadingNote {
  staging::Entry entry;   // with its hash
  std::string sha256;     // empty: it was not needed
  std::string published;  // the digest that it was compared with; empty means none
};

// Hands over what is noted of a folder with this description; nothing if the notes are of another one.
void read_notes(const std::filesystem::path& path, const std::string& of,
                const std::function<void(const ReadingNote&)>& sink);

// Notes of one reading. Without them, as on a full drive, the next reading begins at the first file.
class ReadingNotes {
 public:
  // Smaller files are read as fast as their notes.
  static constexpr Bytes kSmallest = 64 * kKiB;
  using Add = std::function<void(const ReadingNote&)>;

  // Replaces the file at `path`: of the former notes those stay that `kept` adds, else the notes of files
  // that have changed would add up. A crash leaves the former ones, or these.
  ReadingNotes(const std::filesystem::path& path, const std::string& of,
               const std::function<void(const Add& add)>& kept);
  ~ReadingNotes();
  ReadingNotes(const ReadingNotes&) = delete;
  ReadingNotes& operator=(const ReadingNotes&) = delete;

  void add(const ReadingNote& note);  // any thread

 private:
  std::mutex mutex_;  // for what follows
  UniqueFd file_;     // none once it could not be written
  std::string waiting_;
  SteadyTime written_at_{};

  void write_waiting();
};

}  // namespace spark::fleet
