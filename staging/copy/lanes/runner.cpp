#include "staging/copy/lanes/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/threads.hpp"
#include "staging/copy/lanes/lane.hpp"

namespace spark::staging {
namespace {

struct OpenFile {
  std::unique_ptr<FileWork> work;
  std::vector<std::uint64_t> to_do;       // pieces, the last first; guarded by Run::mutex_
  std::atomic<std::uint64_t> unfinished;  // pieces
};

// The next work for a lane.
struct Job {
  enum class Kind { Piece, NewFile, Later, Nothing };  // Later: another thread may be opening a large file
  Kind kind = Kind::Nothing;
  std::shared_ptr<OpenFile> file;
  std::uint64_t index = 0;  // of the piece, or of the new file
};

class Run {
 public:
  Run(const RunPlan& plan, std::atomic<bool>& failed) : plan_(plan), failed_(failed) {}

  Result<> go() {
    const bool has_rings = plan_.io != IoKind::Threads && has_io_uring();
    const unsigned threads = has_rings ? plan_.shape.threads : plan_.shape.threads * plan_.shape.lanes;
    const auto ran = run_in_threads(
        threads, [this](std::size_t) { work(); }, [this] { stop(); });
    if (!ran) return fail_with(ran.error(), "copying files");
    if (error_) return fail(std::move(*error_));
    return {};
  }

 private:
  // A lane and its current file.
  struct Seat {
    Seat(unsigned number, Io& io, Counters& counters)
        : lane(number, io.buffer(number), io.lanes(), counters) {}
    Lane lane;
    std::shared_ptr<OpenFile> file;
    std::uint64_t piece = 0;
  };

  const RunPlan& plan_;
  std::atomic<bool>& failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<OpenFile>> open_;   // with pieces to hand out
  std::uint64_t next_file_ = 0, under_way_ = 0;  // under_way_: pieces
  unsigned starting_ = 0;                        // files that are being opened, or started again
  std::optional<Error> error_;

  void work() {
    const auto io = make_io(plan_.io, plan_.shape.lanes, usable_chunk(plan_.shape.chunk));
    std::deque<Seat> seats;
    for (unsigned i = 0; i < io->lanes(); ++i) seats.emplace_back(i, *io, *plan_.counters);
    unsigned busy = 0;  // requests in progress
    for (;;) {
      const bool goes_on = fill_seats(*io, seats, busy);
      if (busy > 0) {
        busy -= 1 - advance(*io, seats[io->wait().lane]);
      } else if (!goes_on) {
        return;
      }
    }
  }

  // Gives idle lanes work; waits for work if all are idle. False if no work is left, except files that have
  // to be read again.
  bool fill_seats(Io& io, std::deque<Seat>& seats, unsigned& busy) {
    for (Seat& seat : seats) {
      while (seat.lane.is_idle()) {
        Job job = next(busy == 0);
        if (job.kind == Job::Kind::Nothing) return false;
        if (job.kind == Job::Kind::Later) return true;
        if (job.kind == Job::Kind::NewFile) {
          start_file(job.index);
          continue;
        }
        seat.file = std::move(job.file);
        seat.piece = job.index;
        seat.lane.begin(*seat.file->work, job.index);
        busy += advance(io, seat);
      }
    }
    return true;
  }

  // Advances the lane. Returns 1 if it then has a request in progress, 0 if it is idle.
  unsigned advance(Io& io, Seat& seat) {
    auto request = failed_ ? stopped(seat.lane) : seat.lane.advance(plan_.shape.chunk);
    if (request && *request != nullptr) {
      io.start(**request);
      return 1;
    }
    Result<> done;
    if (!request) {
      done = request.take_error();
    } else {
      done = finish_piece(seat);
    }
    if (!done) fail_run(std::move(done.error()));
    seat.file.reset();
    return 0;
  }

  static Result<Request*> stopped(Lane& lane) {
    lane.abandon();
    return fail(Errc::Cancelled, "stopped by an error elsewhere");
  }

  bool has_room() const { return plan_.limit == nullptr || under_way_ < plan_.limit->most(); }

  Job next(bool may_wait) {
    std::unique_lock lock(mutex_);
    const auto is_ready = [&] {
      return failed_ || (open_.empty() ? next_file_ < plan_.files || starting_ == 0 : has_room());
    };
    if (!may_wait && !is_ready()) return {Job::Kind::Later, nullptr, 0};
    changed_.wait(lock, is_ready);
    if (failed_) return {};
    if (!open_.empty()) {
      Job job{Job::Kind::Piece, open_.front(), open_.front()->to_do.back()};
      job.file->to_do.pop_back();
      if (job.file->to_do.empty()) open_.pop_front();
      ++under_way_;
      return job;
    }
    if (next_file_ == plan_.files) return {};
    ++starting_;
    return {Job::Kind::NewFile, nullptr, next_file_++};
  }

  void start_file(std::uint64_t index) {
    auto file = std::make_shared<OpenFile>();
    file->work = plan_.work_for(index);
    if (auto started = file->work->start(); !started) return fail_run(std::move(started.error()));
    if (auto offered = offer(file); !offered) fail_run(std::move(offered.error()));
  }

  // For a file that was started, or has to be read again: offers its pieces and removes it from `starting_`.
  Result<> offer(const std::shared_ptr<OpenFile>& file) {
    for (;;) {
      std::vector<std::uint64_t> pieces = file->work->to_do();
      if (!pieces.empty()) {
        const std::scoped_lock lock(mutex_);
        file->unfinished = pieces.size();
        file->to_do = std::move(pieces);
        open_.push_back(file);
        break;
      }
      auto is_done = file->work->finish();
      if (!is_done) return is_done.take_error();
      if (*is_done) break;
    }
    {
      const std::scoped_lock lock(mutex_);
      --starting_;
    }
    changed_.notify_all();
    return {};
  }

  Result<> finish_piece(Seat& seat) {
    OpenFile& file = *seat.file;
    {
      const std::scoped_lock lock(mutex_);
      --under_way_;
    }
    changed_.notify_all();
    file.work->piece_done(seat.piece, seat.lane.outcome());
    if (--file.unfinished > 0) return {};
    auto is_done = file.work->finish();
    if (!is_done) return is_done.take_error();
    if (*is_done) return {};
    {
      const std::scoped_lock lock(mutex_);
      ++starting_;
    }
    return offer(seat.file);
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      failed_ = true;
    }
    changed_.notify_all();
  }

  // Work that stops because of an error elsewhere also fails; the first error is the cause.
  void fail_run(Error error) {
    {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    stop();
  }
};

}  // namespace

Result<> run(const RunPlan& plan, std::atomic<bool>& failed) {
  return Run(plan, failed).go();
}

}  // namespace spark::staging
