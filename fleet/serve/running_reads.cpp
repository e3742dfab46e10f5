#include "fleet/serve/running_reads.hpp"

#include <algorithm>

namespace spark::fleet {

RunningReads::Read RunningReads::begin(const std::string& of, const BufferPool::Loan* buffer) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(mutex_);
  const bool is_stuck = std::ranges::any_of(
      running_, [&](const Entry& running) { return running.of == of && hangs(running, now); });
  if (is_stuck) return Read(nullptr, End{});
  const auto at = running_.insert(running_.end(), Entry{of, buffer, now});
  return Read(&*at, End{this, at});
}

bool RunningReads::hangs(const Read& read) const {
  return hangs(*read, std::chrono::steady_clock::now());
}

void RunningReads::write_off(BufferPool& pool) const {
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(mutex_);
  for (const Entry& running : running_)
    if (running.buffer != nullptr && hangs(running, now)) pool.write_off(*running.buffer);
}

void RunningReads::end(std::list<Entry>::iterator at) {
  const std::scoped_lock lock(mutex_);
  running_.erase(at);
}

}  // namespace spark::fleet
