#include "fleet/serve/buffer_pool.hpp"

#include <algorithm>

namespace spark::fleet {

BufferPool::Loan BufferPool::take(const std::string& name) {
  std::unique_lock lock(mutex_);
  Client& client = clients_[name];
  ++client.waiting;
  changed_.wait(lock, [&] { return !has_share(client) && (!free_.empty() || made_ < kMost * most_); });
  --client.waiting;
  if (free_.empty()) {
    try {
      free_.push_back(make_());
    } catch (...) {
      forget_idle(name);
      throw;
    }
    ++made_;  // last, so that a failure leaves the place to the next one
  }
  Loan loan(free_.back().release(), GiveBack{this, name});
  free_.pop_back();
  ++client.held;
  return loan;
}

void BufferPool::write_off(const Loan& loan) {
  const std::string& client = loan.get_deleter().client;
  {
    const std::scoped_lock lock(mutex_);
    if (!written_off_.insert(loan.get()).second) return;
    --made_;
    --clients_[client].held;
    forget_idle(client);
  }
  changed_.notify_all();
}

std::size_t BufferPool::in_use() const {
  const std::scoped_lock lock(mutex_);
  return made_ - free_.size();
}

bool BufferPool::has_share(const Client& client) const {
  return client.held >= std::max<std::size_t>(1, most_ / clients_.size());
}

// `mutex_` is locked.
void BufferPool::forget_idle(const std::string& client) {
  const auto found = clients_.find(client);
  if (found->second.held == 0 && found->second.waiting == 0) clients_.erase(found);
}

void BufferPool::give_back(staging::IoBuffer* buffer, const std::string& client) {
  std::unique_ptr<staging::IoBuffer> extra(buffer);
  {
    const std::scoped_lock lock(mutex_);
    if (written_off_.erase(buffer) > 0) return;
    if (made_ <= most_) {
      free_.push_back(std::move(extra));  // has its capacity since the start
    } else {
      --made_;
    }
    --clients_[client].held;
    forget_idle(client);
  }
  changed_.notify_all();
}

}  // namespace spark::fleet
