#include "fleet/fetch/presence.hpp"

#include "base/threads.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kBeat{200};

}  // namespace

Presence::Presence(std::unique_ptr<Board> board)
    : board_(std::move(board)), beating_(start_thread([this] {
        while (!is_over_) {
          board_->beat();
          std::this_thread::sleep_for(kBeat);
        }
      })) {}

Presence::~Presence() {
  is_over_ = true;
  if (beating_.joinable()) beating_.join();
  board_->remove();
}

}  // namespace spark::fleet
