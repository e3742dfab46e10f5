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

constexpr std::size_t kMostOpen = 256;  // files, if readers wait for more than the lanes need

struct OpenFile {
  std::unique_ptr<FileWork> work;
  std::uint64_t index = 0;           // in the plan
  std::vector<std::uint64_t> to_do;  // pieces, the last first; guarded by Run::mutex_
  std::uint64_t unfinished = 0;      // pieces; guarded in the same way
};

// The next work for a thread.
struct Job {
  enum class Kind { Piece, Open, Finish, Later, Nothing };  // Later: other threads may find more work
  Kind kind = Kind::Nothing;
  std::shared_ptr<OpenFile> file{};
  std::uint64_t index = 0;  // of the piece, or of the file to open
};

class Run {
 public:
  Run(const RunPlan& plan, RunEnd& end) : plan_(plan), end_(end), is_taken_(plan.files) {}

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
    std::shared_ptr<OpenFile> file;
    std::uint64_t piece = 0;
  };

  const RunPlan& plan_;
  RunEnd& end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<OpenFile>> open_;   // with pieces to hand out
  std::deque<std::shared_ptr<OpenFile>> ended_;  // all their pieces are done
  std::vector<bool> is_taken_;                   // by file: opened, or to be opened first
  std::vector<std::uint64_t> to_open_;           // first: readers wait for them
  std::uint64_t next_file_ = 0, under_way_ = 0;  // under_way_: pieces
  unsigned in_hands_ = 0;                        // files that a thread opens or finishes
  unsigned openers_ = 0;
  std::optional<Error> error_;

  void move_pieces() {
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
        seat.piece = job.index;
        seat.lane.begin(*seat.file->work, job.index);
        busy += advance(io, seat);
      }
    }
    return true;
  }

  // Advances the lane. Returns 1 if it then has a request in progress, 0 if it is idle.
  unsigned advance(Io& io, Seat& seat) {
    auto request = end_.has_failed() ? stopped(seat.lane) : seat.lane.advance(plan_.shape.chunk);
    if (request && *request != nullptr) {
      io.start(**request);
      return 1;
    }
    if (request) {
      end_piece(seat);
    } else {
      fail_run(std::move(request.error()));
    }
    seat.file.reset();
    return 0;
  }

  static Result<Request*> stopped(Lane& lane) {
    lane.abandon();
    return fail(Errc::Cancelled, "stopped by an error elsewhere");
  }

  void end_piece(Seat& seat) {
    OpenFile& file = *seat.file;
    file.work->piece_done(seat.piece, seat.lane.outcome());
    {
      const std::scoped_lock lock(mutex_);
      --under_way_;
      if (--file.unfinished == 0) ended_.push_back(std::move(seat.file));
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
    if (has_piece()) return take_piece();
    return has_work_left() ? Job{Job::Kind::Later} : Job{};
  }

  // For a thread that moves bytes and has no requests in progress. Requires mutex_, as the functions below.
  Job next_for_idle_thread() {
    if (end_.has_failed()) return {};
    if (has_piece()) return take_piece();
    if (!ended_.empty()) return take_ended();
    if (may_open_wanted() || (next_file_ < plan_.files && open_.empty())) return take_unopened();
    return has_work_left() ? Job{Job::Kind::Later} : Job{};
  }

  // A piece in progress may end a file, so an opener stays until the last one.
  Job next_for_opener() {
    if (end_.has_failed()) return {};
    if (!ended_.empty()) return take_ended();
    if (may_open_wanted() || (next_file_ < plan_.files && open_.size() < look_ahead()))
      return take_unopened();
    return has_work_left() || under_way_ > 0 ? Job{Job::Kind::Later} : Job{};
  }

  // Besides pieces in progress.
  bool has_work_left() const {
    return next_file_ < plan_.files || !to_open_.empty() || in_hands_ > 0 || !open_.empty() ||
           !ended_.empty();
  }

  bool has_piece() const {
    return !open_.empty() && (plan_.limit == nullptr || under_way_ < plan_.limit->most());
  }

  std::size_t look_ahead() const { return std::size_t{plan_.shape.threads} * plan_.shape.lanes; }

  // A file stays open, with two descriptors, until its last piece is done. The others wait for those.
  bool may_open_wanted() const {
    return !to_open_.empty() && open_.size() + in_hands_ < std::max(look_ahead(), kMostOpen);
  }

  // A file's pieces to do are the last first, so the wanted one becomes the last, and those that follow it in
  // the file are before it.
  void bring_forward() {
    while (const auto wanted = plan_.wanted ? plan_.wanted() : std::nullopt) {
      const auto file = std::ranges::find(open_, wanted->file, [](const auto& one) { return one->index; });
      if (file == open_.end() && !is_taken_[wanted->file]) {
        is_taken_[wanted->file] = true;
        to_open_.push_back(wanted->file);
        changed_.notify_all();
      }
      if (file == open_.end()) continue;
      std::vector<std::uint64_t>& to_do = (*file)->to_do;
      const auto piece = std::ranges::find(to_do, wanted->piece);
      if (piece == to_do.end()) continue;  // in progress
      std::rotate(to_do.begin(), piece + 1, to_do.end());
      std::rotate(open_.begin(), file, file + 1);
      return;
    }
  }

  Job take_piece() {
    bring_forward();
    Job job{Job::Kind::Piece, open_.front(), open_.front()->to_do.back()};
    job.file->to_do.pop_back();
    if (job.file->to_do.empty()) open_.pop_front();
    ++under_way_;
    return job;
  }

  Job take_unopened() {
    ++in_hands_;
    std::uint64_t index = next_file_;
    if (!to_open_.empty()) {
      index = to_open_.back();
      to_open_.pop_back();
    }
    is_taken_[index] = true;
    while (next_file_ < plan_.files && is_taken_[next_file_]) ++next_file_;
    return {Job::Kind::Open, nullptr, index};
  }

  Job take_ended() {
    Job job{Job::Kind::Finish, std::move(ended_.front()), 0};
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

  Result<> finish_file(std::shared_ptr<OpenFile> file) {
    auto is_done = file->work->finish();
    if (!is_done) return is_done.take_error();
    return *is_done ? Result<>() : offer(std::move(file));
  }

  // Of a file that was opened, or has to be read again.
  Result<> offer(std::shared_ptr<OpenFile> file) {
    std::vector<std::uint64_t> pieces = file->work->to_do();
    while (pieces.empty()) {
      auto is_done = file->work->finish();
      if (!is_done) return is_done.take_error();
      if (*is_done) return {};
      pieces = file->work->to_do();
    }
    const std::scoped_lock lock(mutex_);
    file->unfinished = pieces.size();
    file->to_do = std::move(pieces);
    open_.push_back(std::move(file));
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
