#include "staging/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace spark::staging {
namespace {

struct OpenFile {
  std::unique_ptr<FileWork> work;
  std::uint64_t next = 0;                 // piece to hand out; guarded by Run::mutex_
  std::atomic<std::uint64_t> unfinished;  // pieces
  OpenFile(std::unique_ptr<FileWork> w, std::uint64_t pieces) : work(std::move(w)), unfinished(pieces) {}
};

class Run {
 public:
  Run(const RunPlan& plan, std::atomic<bool>& failed) : plan_(plan), failed_(failed) {}

  Result<> go() {
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < plan_.threads; ++i) threads.emplace_back([this] { work(); });
    }
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return {};
  }

 private:
  struct Piece {
    std::shared_ptr<OpenFile> file;
    std::uint64_t index = 0;
  };

  const RunPlan& plan_;
  std::atomic<bool>& failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<OpenFile>> open_;  // large files with pieces to hand out
  std::uint64_t next_file_ = 0;
  unsigned starting_ = 0;  // threads that may be about to open a large file
  std::optional<Error> error_;

  void work() {
    IoBuffer buffer(plan_.buffer);
    while (!failed_) {
      std::optional<std::uint64_t> new_file;
      const Piece piece = next(new_file);
      Result<> done;
      if (piece.file) {
        done = do_piece(*piece.file, piece.index, buffer);
      } else if (new_file) {
        done = start_file(*new_file, buffer);
      } else {
        return;
      }
      if (!done) fail_run(std::move(done.error()));
    }
  }

  // A piece of an open file, or else a new file, or neither at the end of the run.
  Piece next(std::optional<std::uint64_t>& new_file) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [&] { return failed_ || !open_.empty() || next_file_ < plan_.files || starting_ == 0; });
    if (failed_) return {};
    if (!open_.empty()) {
      Piece piece{open_.front(), open_.front()->next++};
      if (piece.file->next == piece.file->work->pieces()) open_.pop_front();
      return piece;
    }
    if (next_file_ < plan_.files) {
      new_file = next_file_++;
      ++starting_;
    }
    return {};
  }

  Result<> start_file(std::uint64_t index, IoBuffer& buffer) {
    std::unique_ptr<FileWork> work = plan_.work_for(index);
    Result<> started = work->start();
    const std::uint64_t pieces = started ? work->pieces() : 0;
    const bool is_large = pieces > 1;
    auto file = std::make_shared<OpenFile>(std::move(work), pieces);
    {
      const std::scoped_lock lock(mutex_);
      --starting_;
      if (is_large) open_.push_back(file);
    }
    changed_.notify_all();
    if (!started || is_large) return started;
    return do_piece(*file, 0, buffer);
  }

  Result<> do_piece(OpenFile& file, std::uint64_t index, IoBuffer& buffer) {
    Result<> done = file.work->piece(index, buffer);
    if (done && --file.unfinished == 0) done = file.work->finish(buffer);
    return done;
  }

  // Threads that stop because another one failed have errors as well: the first is the cause.
  void fail_run(Error error) {
    {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::move(error);
      failed_ = true;
    }
    changed_.notify_all();
  }
};

}  // namespace

Result<> run(const RunPlan& plan, std::atomic<bool>& failed) {
  return Run(plan, failed).go();
}

unsigned default_threads() {
  return std::clamp(2 * std::thread::hardware_concurrency(), 4U, 16U);
}

}  // namespace spark::staging
