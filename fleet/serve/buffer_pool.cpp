#include "fleet/serve/buffer_pool.hpp"

namespace spark::fleet {

BufferPool::Loan BufferPool::take() {
  std::unique_lock lock(mutex_);
  is_free_.wait(lock, [this] { return !free_.empty() || made_ < most_; });
  if (free_.empty()) {
    free_.push_back(make_());
    ++made_;  // last, so that a failure leaves the place to the next one
  }
  Loan loan(free_.back().release(), GiveBack{this});
  free_.pop_back();
  return loan;
}

void BufferPool::give_back(staging::IoBuffer* buffer) {
  {
    const std::scoped_lock lock(mutex_);
    free_.emplace_back(buffer);  // has its capacity since the start
  }
  is_free_.notify_one();
}

}  // namespace spark::fleet
