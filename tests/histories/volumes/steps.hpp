// The steps of a history of volumes.
#pragma once

#include <span>

#include "tests/histories/volumes/cluster.hpp"

namespace spark::histories {

// The chance of one step.
class Dice {
 public:
  explicit Dice(const Step& step) : dice_(step.dice), more_(step.dice[3]) {}

  // 0 … limit - 1.
  std::uint32_t pick(std::size_t limit) {
    if (limit == 0) return 0;
    const std::uint32_t drawn =
        next_ < dice_.size() ? dice_[next_++] : static_cast<std::uint32_t>(more_.next());
    return drawn % static_cast<std::uint32_t>(limit);
  }

 private:
  std::array<std::uint32_t, 4> dice_;
  std::size_t next_ = 0;
  Random more_;
};

struct VolumeAction {
  const char* name;
  unsigned weight;
  void (*take)(Cluster& cluster, Dice& dice);
};

std::span<const VolumeAction> fault_steps();     // links, targets, disks, names; the daemon; the state folder
std::span<const VolumeAction> operator_steps();  // requests and configurations
std::span<const VolumeAction> program_steps();   // what other programs do, by hand or not

// Ends all faults, and what other programs left in the way.
void end_faults(Cluster& cluster);

}  // namespace spark::histories
