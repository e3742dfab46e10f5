// How busy a thread and its host's processors were: whether they, and not the link, limited a transfer.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace spark::fleet {

struct Load {
  // The time in which the calling thread ran or waited for a processor.
  std::chrono::nanoseconds thread{};
  std::vector<std::uint64_t> interrupts;  // of each processor, in ticks: spent for the network's packets
};

Load current_load();

Load growth(const Load& before, const Load& after);
void add(Load& sum, const Load& more);

// The share of the time, 0 to 1, that the thread was busy with this growth; 1 if a processor did little else
// than interrupts.
double busy_share(const Load& grown, std::chrono::nanoseconds elapsed);

}  // namespace spark::fleet
