// What of a partial copy is finished and flushed, so that the next attempt takes it over.
#pragma once

#include <atomic>
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
#include "staging/manifest/lines.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// A file of many pieces is started, then has pieces one by one, then is finished; a smaller one is finished.
// Started again because its source changed, it has none of its pieces any more.
struct JournalLine {
  enum class Kind { Finished, Started, Piece };
  Kind kind = Kind::Finished;
  Entry entry;              // Piece: its path alone
  std::uint64_t piece = 0;  // Piece: which
  Digest digest;            // Piece: its hash
  bool operator==(const JournalLine&) const = default;
};

// Gives the lines that an earlier attempt wrote down; none if there is nothing to trust. A line counts only
// if its own hash is right, and only if all lines before it do.
using JournalSink = std::function<void(JournalLine)>;
void read_journal(const std::filesystem::path& path, const JournalSink& sink);
void parse_journal(std::string_view text, const JournalSink& sink);

// A line is written after what it tells is on the disk: flush the file system, append, flush the journal.
// That happens about once a second, in a thread of its own; where there can be none, in that of whoever adds
// a line.
class Journal {
 public:
  // Replaces the journal by one of what `kept` gives to its argument. `file_system` is a descriptor on what
  // is flushed, opened before the first write, so that no error is missed. `failed` is set when flushing
  // fails.
  static Result<std::unique_ptr<Journal>> start(const std::filesystem::path& path,
                                                const std::function<void(const JournalSink&)>& kept,
                                                int file_system, std::atomic<bool>& failed);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Any thread. What they tell has been written, not flushed. A finished entry stays where and as it is.
  void finished(const Entry& entry);
  void started(const Entry& entry);
  void piece(const Entry& entry, std::uint64_t piece, const Digest& digest);

  // Stops the thread and writes the rest. An error of any flush is the answer: it is final, not tried again.
  Result<> close();

 private:
  // A line that is not written yet: while the file system is flushed there may be a hundred thousand.
  struct Waiting {
    const Entry* finished = nullptr;
    std::unique_ptr<std::string> other;  // a line of another kind
  };

  Journal(UniqueFd file, std::string shown, int file_system, std::atomic<bool>& failed);

  UniqueFd file_;
  std::string shown_;
  int file_system_;
  std::atomic<bool>& failed_;
  std::mutex flushing_;  // held before mutex_: lines are written in their order
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<Waiting> waiting_;
  std::optional<Error> error_;                        // the first
  std::chrono::steady_clock::time_point flush_next_;  // without a thread
  std::thread thread_;                                // last: it uses all of the above

  void add(Waiting line);
  void work();
  bool is_due();
  void flush_waiting();
  Result<> write_down(const std::vector<Waiting>& lines);
};

}  // namespace spark::staging
