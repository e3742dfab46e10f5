// Moves one piece of a file through one buffer: read, hash, write, chunk by chunk.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/files/io/io.hpp"

namespace spark::staging {

class Lane {
 public:
  Lane(unsigned number, std::span<std::byte> buffer, unsigned siblings, Counters& counters);

  bool is_idle() const { return file_ == nullptr; }
  void begin(FileWork& file, std::uint64_t piece);
  void abandon() { file_ = nullptr; }  // only if no request is in progress

  // Called after begin, and after each request of this lane has ended. Returns the next request, or none if
  // the piece is done (see outcome) and the lane idle. An error leaves the lane idle as well.
  Result<Request*> advance(std::size_t chunk);
  const PieceOutcome& outcome() const { return outcome_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { Fresh, Reading, Writing };

  std::span<std::byte> buffer_;
  unsigned siblings_;  // lanes of the same thread: all of them wait while one hashes
  Counters& counters_;
  FileWork* file_ = nullptr;
  State state_ = State::Fresh;
  Bytes at_ = 0, end_ = 0;  // of the piece
  std::size_t want_ = 0;    // bytes of the chunk in progress
  Hasher hasher_;
  Request request_;
  PieceOutcome outcome_;
  Clock::time_point started_;

  Result<Request*> next_chunk(std::size_t chunk);
  Result<Request*> after_read(std::size_t chunk);
  Result<Request*> after_write(std::size_t chunk);
  Result<Request*> end();
  Request* ask(Request::Kind kind, const OpenedFile& file, std::size_t bytes);
  Result<bool> is_whole();
};

}  // namespace spark::staging
