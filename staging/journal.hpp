// Which files of a partial copy are finished and flushed, so that the next attempt takes them over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/manifest.hpp"

namespace spark::staging {

// What an earlier attempt wrote down; empty if there is nothing to trust. A line counts only if its own hash
// is right, and only if all lines before it do.
std::vector<Entry> read_journal(const std::filesystem::path& path);
std::vector<Entry> parse_journal(std::string_view text);

// A line is written after what it tells is on the disk: flush the file system, append, flush the journal.
// That happens about once a second, in a thread of its own.
class Journal {
 public:
  // Replaces the journal by one of `kept`. `file_system` is a descriptor on what is flushed, opened before
  // the first write, so that no error is missed. `failed` is set when flushing fails.
  static Result<std::unique_ptr<Journal>> start(const std::filesystem::path& path,
                                                std::span<const Entry> kept, int file_system,
                                                std::atomic<bool>& failed);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void add(const Entry& entry);  // any thread

  // Stops the thread and writes the rest. An error of any flush is the answer: it is final, not tried again.
  Result<> close();

 private:
  Journal(UniqueFd file, std::string shown, int file_system, std::atomic<bool>& failed);

  UniqueFd file_;
  std::string shown_;
  int file_system_;
  std::atomic<bool>& failed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::string waiting_;         // lines not written yet
  std::optional<Error> error_;  // the first
  std::thread thread_;          // last: it uses all of the above

  void work();
  void flush_waiting();
  Result<> write_down(std::string_view lines);
};

}  // namespace spark::staging
