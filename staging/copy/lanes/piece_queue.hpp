// The pieces of a run that no lane has begun, in the order in which lanes begin them: what readers wait for
// goes first, and the rest of its file after it. Guarded by its user.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "staging/copy/lanes/fair_wishes.hpp"
#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/lane.hpp"

namespace spark::staging {

// A unit of a file of the plan that a reader waits for.
struct WantedUnit {
  std::uint64_t file = 0, unit = 0;
};
using NextWanted = std::function<std::optional<WantedUnit>()>;

struct OpenFile {
  std::unique_ptr<FileWork> work;
  std::uint64_t index = 0;       // in the plan
  std::uint64_t unfinished = 0;  // pieces

  // For the queue.
  struct Early {
    EarlyUnits units{};
    std::set<std::uint64_t> begun{};  // units
    unsigned under_way = 0;           // units: the piece waits for them
  };
  std::vector<std::uint64_t> to_do{};      // pieces, the last first
  std::map<std::uint64_t, Early> early{};  // by piece to do
};
using OpenFilePtr = std::shared_ptr<OpenFile>;

struct QueuedTask {
  OpenFilePtr file;
  LaneTask task;
};

class PieceQueue {
 public:
  // `wanted` gives the next unit that a reader waits for; it may be empty.
  PieceQueue(std::uint64_t files, NextWanted wanted) : states_(files), wanted_from_(std::move(wanted)) {}

  // Files that are not open yet. Readers wait for the wanted ones, which are opened first.
  bool has_file() const { return next_file_ < states_.size(); }
  std::size_t wanted_files() const { return to_open_.size(); }
  std::uint64_t take_file();

  // One that was opened, or has to be read again.
  void add(OpenFilePtr file, std::vector<std::uint64_t> pieces);
  std::size_t open_files() const { return open_.size(); }  // with pieces

  bool has_piece() const { return free_piece().has_value(); }
  QueuedTask take_piece();  // only if there is one

  // Takes over what readers wait for by now. True: there was a unit that was not known of before.
  bool collect_wanted();
  // The next unit that a reader waits for, to be copied before its piece, or a piece that has to be copied as
  // a whole.
  std::optional<QueuedTask> take_unit();
  void unit_done(OpenFile& file, const LaneTask& task, const PieceOutcome& outcome);
  // The same for a piece in progress.
  std::optional<std::uint64_t> take_unit_of(const OpenFile& file, std::uint64_t piece);
  void piece_done(const OpenFile& file, std::uint64_t piece) { in_progress_.erase({file.index, piece}); }
  // Moves the piece of the next unit that a reader waits for to the front.
  std::optional<std::uint64_t> bring_forward();

 private:
  enum class FileState : std::uint8_t { Closed, Opening, Opened };
  struct Place {
    std::size_t file, piece;  // indices
  };

  std::vector<FileState> states_;
  NextWanted wanted_from_;
  std::uint64_t next_file_ = 0;
  std::deque<std::uint64_t> to_open_;  // first
  std::deque<OpenFilePtr> open_;       // with pieces
  FairWishes wanted_;
  using Units = std::set<std::uint64_t>;
  std::map<std::uint64_t, Units> later_;  // wanted, of files that are being opened
  std::map<std::pair<std::uint64_t, std::uint64_t>, Units> in_progress_;  // wanted, by file and piece

  std::optional<Place> free_piece() const;
  QueuedTask take(const Place& place);
};

}  // namespace spark::staging
