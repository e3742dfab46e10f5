#include "staging/copy/lanes/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/threads.hpp"
#include "staging/copy/lanes/lane.hpp"
#include "staging/copy/lanes/lane_shares.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kMostOpen = 256;  // files, if readers wait for more than the lanes need

// The next work for a thread.
struct Job {
  enum class Kind { Piece, Open, Finish, Later, Nothing };  // Later: other threads may find more work
  Kind kind = Kind::Nothing;
  OpenFilePtr file{};
  LaneTask task{};          // of a piece, or of a unit of it
  std::uint64_t index = 0;  // of the file to open
};

class Run {
 public:
  Run(const RunPlan& plan, RunEnd& end)
      : plan_(plan),
        end_(end),
        lanes_(std::size_t{plan.shape.threads} * plan.shape.lanes),
        shares_(plan.limit, lanes_, static_cast<bool>(plan.wanted)),
        queue_(plan.files, plan.wanted) {}

  Result<> go() {
    const RunEnd::Waker waker(end_, [this] { wake_all(); });
    const bool has_rings = plan_.io != IoKind::Threads && has_io_uring();
    const unsigned movers = has_rings ? plan_.shape.threads : plan_.shape.threads * plan_.shape.lanes;
    const auto ran = run_in_threads(
        movers + plan_.shape.openers,
        [this, movers](std::size_t thread) { thread < movers ? move_pieces() : open_files(); },
        [this] { end_.fail(); });
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
    OpenFilePtr file;
    LaneTask task;
  };

  const RunPlan& plan_;
  RunEnd& end_;
  const std::size_t lanes_;  // of all threads
  LaneShares shares_;
  std::mutex mutex_;
  std::condition_variable changed_;
  PieceQueue queue_;
  std::deque<OpenFilePtr> ended_;         // all their pieces are done
  std::uint64_t pieces_ = 0, units_ = 0;  // under way
  unsigned in_hands_ = 0;                 // files that a thread opens or finishes
  unsigned openers_ = 0;
  std::optional<Error> error_;

  void move_pieces() {
    const auto io = make_io(plan_.io, plan_.shape.lanes, usable_chunk(plan_.shape.chunk));
    std::deque<Seat> seats;
    for (unsigned i = 0; i < io->lanes(); ++i) seats.emplace_back(i, *io, *plan_.counters);
    unsigned busy = 0;  // requests in progress
    for (;;) {
      if (plan_.wanted) look_for_wanted();
      const bool goes_on = fill_seats(*io, seats, busy);
      if (busy > 0) {
        busy -= 1 - advance(*io, seats[io->wait().lane]);
      } else if (!goes_on) {
        return;
      }
    }
  }

  // Opens files before the lanes need them, and finishes them: both may wait for a file system.
  void open_files() {
    {
      const std::scoped_lock lock(mutex_);
      ++openers_;
    }
    const auto next = [this] { return wait_for([this] { return next_for_opener(); }); };
    for (Job job = next(); job.kind != Job::Kind::Nothing; job = next()) handle(job);
  }

  // Gives idle lanes work; waits for work if all are idle. False if no work is left, except files that have
  // to be read again.
  bool fill_seats(Io& io, std::deque<Seat>& seats, unsigned& busy) {
    for (Seat& seat : seats) {
      while (seat.lane.is_idle()) {
        Job job = busy == 0 ? wait_for([this] { return next_for_idle_thread(); }) : next_for_busy_thread();
        if (job.kind == Job::Kind::Nothing) return false;
        if (job.kind == Job::Kind::Later) return true;
        if (job.kind != Job::Kind::Piece) {
          handle(job);
          continue;
        }
        seat.file = std::move(job.file);
        seat.task = job.task;
        seat.lane.begin(*seat.file->work, seat.task);
        busy += advance(io, seat);
      }
    }
    return true;
  }

  // Advances the lane. Returns 1 if it then has a request in progress, 0 if it is idle.
  unsigned advance(Io& io, Seat& seat) {
    if (!seat.task.unit && shares_.has_units()) fetch_wanted(seat);
    const Bytes usual = plan_.shape.chunk;
    const std::size_t chunk = seat.task.unit ? usual : shares_.chunk_of_piece(usual);
    auto request = end_.has_failed() ? stopped(seat.lane) : seat.lane.advance(chunk);
    if (request && *request != nullptr) {
      io.start(**request);
      return 1;
    }
    if (request) {
      end_task(seat);
    } else {
      fail_run(std::move(request.error()));
    }
    seat.file.reset();
    return 0;
  }

  void fetch_wanted(Seat& seat) {
    const std::scoped_lock lock(mutex_);
    while (const auto unit = queue_.take_unit_of(*seat.file, seat.task.piece)) seat.lane.fetch_first(*unit);
  }

  static Result<Request*> stopped(Lane& lane) {
    lane.abandon();
    return fail(Errc::Cancelled, "stopped by an error elsewhere");
  }

  void end_task(Seat& seat) {
    OpenFile& file = *seat.file;
    file.work->piece_done(seat.task.piece, seat.lane.outcome());
    {
      const std::scoped_lock lock(mutex_);
      if (seat.task.unit) {
        --units_;
        queue_.unit_done(file, seat.task, seat.lane.outcome());
      } else {
        --pieces_;
        queue_.piece_done(file, seat.task.piece);
        if (--file.unfinished == 0) ended_.push_back(std::move(seat.file));
      }
    }
    changed_.notify_all();
  }

  // After each request: a unit need not wait for the end of a piece.
  void look_for_wanted() {
    {
      const std::scoped_lock lock(mutex_);
      shares_.moved();
      if (!shares_.has_units() || !queue_.collect_wanted()) return;
      shares_.wanted();
    }
    changed_.notify_all();
  }

  // Waits for a change while `next` returns Later.
  template <class Next>
  Job wait_for(const Next& next) {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job job = next();
      if (job.kind != Job::Kind::Later) return job;
      changed_.wait(lock);
    }
  }

  // For a thread that has requests in progress and must not wait. It leaves files to the openers.
  Job next_for_busy_thread() {
    const std::scoped_lock lock(mutex_);
    if (openers_ == 0) return next_for_idle_thread();
    if (end_.has_failed()) return {};
    if (Job job = next_to_move(); job.file) return job;
    return has_work_left() ? Job{Job::Kind::Later} : Job{};
  }

  // For a thread that moves bytes and has no requests in progress. Requires mutex_, as the functions below.
  Job next_for_idle_thread() {
    if (end_.has_failed()) return {};
    if (Job job = next_to_move(); job.file) return job;
    if (!ended_.empty()) return take_ended();
    if (may_open_wanted() || (queue_.has_file() && queue_.open_files() == 0)) return take_unopened();
    return has_work_left() ? Job{Job::Kind::Later} : Job{};
  }

  // A piece in progress may end a file, so an opener stays until the last one.
  Job next_for_opener() {
    if (end_.has_failed()) return {};
    if (!ended_.empty()) return take_ended();
    if (may_open_wanted() || (queue_.has_file() && queue_.open_files() < lanes_)) return take_unopened();
    return has_work_left() || pieces_ > 0 ? Job{Job::Kind::Later} : Job{};
  }

  // Besides pieces in progress.
  bool has_work_left() const {
    return queue_.has_file() || queue_.wanted_files() > 0 || in_hands_ > 0 || queue_.open_files() > 0 ||
           !ended_.empty();
  }

  // A file stays open, with two descriptors, until its last piece is done. The others wait for those.
  bool may_open_wanted() const {
    return queue_.wanted_files() > 0 && queue_.open_files() + in_hands_ < std::max(lanes_, kMostOpen);
  }

  // No file: there is none.
  Job next_to_move() {
    const std::size_t wanted_before = queue_.wanted_files();
    std::optional<QueuedTask> next;
    const bool has_units = shares_.has_units();
    if (has_units && units_ < shares_.most_units()) next = queue_.take_unit();
    if (next) shares_.wanted();
    if (!next && pieces_ < shares_.most_pieces() && queue_.has_piece()) {
      if (!has_units) {
        queue_.collect_wanted();
        queue_.bring_forward();
      }
      next = queue_.take_piece();
    }
    if (queue_.wanted_files() > wanted_before) changed_.notify_all();
    if (!next) return {};
    next->task.shows_units = has_units;
    ++(next->task.unit ? units_ : pieces_);
    return {Job::Kind::Piece, std::move(next->file), next->task};
  }

  Job take_unopened() {
    ++in_hands_;
    return {Job::Kind::Open, nullptr, {}, queue_.take_file()};
  }

  Job take_ended() {
    Job job{Job::Kind::Finish, std::move(ended_.front())};
    ended_.pop_front();
    ++in_hands_;
    return job;
  }

  void handle(Job& job) {
    const bool opens = job.kind == Job::Kind::Open;
    auto offered = opens ? open_file(job.index) : finish_file(std::move(job.file));
    if (!offered) fail_run(std::move(offered.error()));
    {
      const std::scoped_lock lock(mutex_);
      --in_hands_;
    }
    changed_.notify_all();
  }

  Result<> open_file(std::uint64_t index) {
    auto file = std::make_shared<OpenFile>();
    file->index = index;
    file->work = plan_.work_for(index);
    if (auto started = file->work->start(); !started) return started;
    return offer(std::move(file));
  }

  Result<> finish_file(OpenFilePtr file) {
    auto is_done = file->work->finish();
    if (!is_done) return is_done.take_error();
    return *is_done ? Result<>() : offer(std::move(file));
  }

  // Of a file that was opened, or has to be read again.
  Result<> offer(OpenFilePtr file) {
    std::vector<std::uint64_t> pieces = file->work->to_do();
    while (pieces.empty()) {
      auto is_done = file->work->finish();
      if (!is_done) return is_done.take_error();
      if (*is_done) return {};
      pieces = file->work->to_do();
    }
    const std::scoped_lock lock(mutex_);
    queue_.add(std::move(file), std::move(pieces));
    return {};
  }

  // Under the lock, so that a thread that is about to wait is not missed.
  void wake_all() {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  }

  // Work that stops because of an error elsewhere also fails; the first error is the cause.
  void fail_run(Error error) {
    {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    end_.fail();
  }
};

}  // namespace

Result<> run(const RunPlan& plan, RunEnd& end) {
  return Run(plan, end).go();
}

}  // namespace spark::staging
