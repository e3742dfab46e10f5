// Moves one piece of a file through one buffer: read, hash, write, chunk by chunk.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/files/io/io.hpp"

namespace spark::staging {

// Digests of the units of a piece that were copied before it.
using EarlyUnits = std::array<std::optional<Digest>, kUnitsOfPiece>;

struct LaneTask {
  std::uint64_t piece = 0;
  std::optional<std::uint64_t> unit{};  // of the piece: only this one, before the piece is begun
  // Read from the copy and compared: the piece's digest covers the bytes that readers got.
  EarlyUnits early{};
  bool shows_units = false;  // tells the file of the units of a piece as they arrive
};

class Lane {
 public:
  Lane(unsigned number, std::span<std::byte> buffer, unsigned siblings, Counters& counters);

  bool is_idle() const { return file_ == nullptr; }
  void begin(FileWork& file, const LaneTask& task);
  // A reader waits for this unit of the piece in progress: it comes next, unless it is there.
  void fetch_first(std::uint64_t unit);
  void abandon() { file_ = nullptr; }  // only if no request is in progress

  // Called after begin, and after each request of this lane has ended. Returns the next request, or none if
  // the task is done (see outcome) and the lane idle. An error leaves the lane idle as well.
  Result<Request*> advance(std::size_t chunk);
  const PieceOutcome& outcome() const { return outcome_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { Fresh, Reading, Writing, ReadingBack };

  std::span<std::byte> buffer_;
  unsigned siblings_;  // lanes of the same thread: all of them wait while one hashes
  Counters& counters_;
  FileWork* file_ = nullptr;
  State state_ = State::Fresh;
  LaneTask task_;
  Bytes at_ = 0, end_ = 0;  // of the piece, or the unit
  std::size_t want_ = 0;    // bytes of the chunk in progress
  Hasher hasher_;
  Hasher early_hasher_;  // of the unit that is read back, or fetched first
  // Of the piece, while such a unit is fetched; the last one is the first.
  std::optional<std::pair<Bytes, Bytes>> interrupted_;
  std::vector<std::uint64_t> first_;
  Request request_;
  PieceOutcome outcome_;
  Clock::time_point started_;

  Result<Request*> next_chunk(std::size_t chunk);
  Result<Request*> after_read(std::size_t chunk);
  Result<Request*> after_write(std::size_t chunk);
  Result<Request*> after_read_back(std::size_t chunk);
  Result<Request*> end();
  Request* ask(Request::Kind kind, const OpenedFile& file, std::size_t bytes);
  ReadOutcome take_read(const OpenedFile& file);
  const std::optional<Digest>& early_at(Bytes offset) const;
  Bytes end_of_unit(Bytes offset) const;
  void interrupt();
  void resume();
};

}  // namespace spark::staging
