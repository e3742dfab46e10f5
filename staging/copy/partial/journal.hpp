// Records the parts of a partial copy that are finished and flushed, so that the next attempt resumes from
// them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// A file of several pieces is started, then gets its pieces one by one, then is finished; a smaller file is
// only finished. Starting a file again, because its source changed, discards its pieces.
struct JournalLine {
  enum class Kind { Finished, Started, Piece };
  Kind kind = Kind::Finished;
  Entry entry;              // Piece: its path alone
  std::uint64_t piece = 0;  // Piece: its number
  Digest digest;            // Piece: its hash
  bool operator==(const JournalLine&) const = default;
};

// Hands over the lines written by an earlier attempt; none if the journal can't be trusted. A line counts
// only if its own hash is right, and all lines before it count.
using JournalSink = std::function<void(JournalLine)>;
void read_journal(const std::filesystem::path& path, const JournalSink& sink);
void parse_journal(std::string_view text, const JournalSink& sink);

// A line is written after its data is on the disk: flush the file system, append the line, flush the journal.
// A separate thread does this about once a second. If no thread can be created, the thread that adds a line
// does it.
class Journal {
 public:
  // Replaces the journal by a new one with the lines that `kept` passes to its argument. `file_system` is a
  // descriptor on the file system to flush, opened before the first write, so that no error is missed.
  // If flushing fails, the run ends.
  static Result<std::unique_ptr<Journal>> start(const std::filesystem::path& path,
                                                const std::function<void(const JournalSink&)>& kept,
                                                int file_system, RunEnd& end);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Any thread. Call after the data was written; it need not be flushed. A finished entry must keep its
  // address and content.
  void finished(const Entry& entry);
  void started(const Entry& entry);
  // The same, written down when it returns: what the copy had before may be discarded then. An error is that
  // of any flush.
  Result<> started_now(const Entry& entry);
  void piece(const Entry& entry, std::uint64_t piece, const Digest& digest);

  // Stops the thread and writes the rest. Returns the error of any flush; it is final and not retried.
  Result<> close();

 private:
  // A line that is not written yet: up to a hundred thousand of them wait while the file system is flushed.
  struct Waiting {
    const Entry* finished = nullptr;
    std::unique_ptr<std::string> other;  // a line of another kind
  };

  Journal(UniqueFd file, std::string shown, int file_system, RunEnd& end);

  UniqueFd file_;
  std::string shown_;
  int file_system_;
  RunEnd& end_;
  std::mutex flushing_;  // taken before mutex_, so that lines are written in order
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<Waiting> waiting_;
  std::optional<Error> error_;                        // the first
  std::chrono::steady_clock::time_point flush_next_;  // without a thread
  std::thread thread_;                                // last: it uses all members above

  void add(Waiting line);
  void work();
  bool is_due();
  void flush_waiting();
  Result<> write_down(const std::vector<Waiting>& lines);
};

}  // namespace spark::staging
