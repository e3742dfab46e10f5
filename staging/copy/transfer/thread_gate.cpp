#include "staging/copy/transfer/thread_gate.hpp"

#include <chrono>

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kWindow{100};
constexpr unsigned kLeastBatches = 2;  // of each thread in a window

}  // namespace

bool ThreadGate::wait(unsigned thread) {
  if (may_work(thread)) return true;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_closed_ || may_work(thread); });
  return !is_closed_;
}

// The first batches after a change began before it: they are not measured.
void ThreadGate::did(double work, SteadyTime now) {
  const std::scoped_lock lock(mutex_);
  if (++batches_ <= allowed_) {
    since_ = now;
    work_ = 0;
    return;
  }
  work_ += work;
  if (now - since_ < kWindow || batches_ < (1 + kLeastBatches) * allowed_) return;
  search_.measured(work_ / std::chrono::duration<double>(now - since_).count());
  since_ = now;
  work_ = 0;
  batches_ = search_.threads() == allowed_ ? allowed_.load() : 0;
  allowed_ = search_.threads();
  changed_.notify_all();
}

void ThreadGate::close() {
  {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace spark::staging
