// A board with its sign of life: while it is there, peers see what this host has.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "fleet/board/board.hpp"

namespace spark::fleet {

class Presence {
 public:
  explicit Presence(std::unique_ptr<Board> board);
  ~Presence();  // takes the board away
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  Board& board() { return *board_; }

 private:
  std::unique_ptr<Board> board_;
  std::atomic<bool> is_over_{false};
  std::thread beating_;
};

}  // namespace spark::fleet
