// A board with its sign of life. While this object exists, peers see the progress of this host.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "fleet/board/board.hpp"

namespace spark::fleet {

class Presence {
 public:
  explicit Presence(std::unique_ptr<Board> board);
  ~Presence();  // removes the board
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  Board& board() { return *board_; }

 private:
  std::unique_ptr<Board> board_;
  std::atomic<bool> is_over_{false};
  std::thread beating_;
};

}  // namespace spark::fleet
