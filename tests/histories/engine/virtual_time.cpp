#include "tests/histories/engine/virtual_time.hpp"

#include <algorithm>

namespace spark::histories {

WallTime VirtualTime::wall() const {
  return wall_start_ + std::chrono::duration_cast<WallTime::duration>(now_ - start_ + wall_shift_);
}

Duration VirtualTime::elapsed() const {
  return std::chrono::floor<Duration>(now_ - start_);
}

TimeSource::Ticket VirtualTime::call_at(SteadyTime at, std::function<void()> due) {
  const Ticket ticket = next_ticket_++;
  tickets_[ticket] = due_.emplace(at, std::pair(ticket, std::move(due)));
  return ticket;
}

void VirtualTime::drop(Ticket ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  due_.erase(found->second);
  tickets_.erase(found);
}

void VirtualTime::attach(boost::asio::io_context& context) {
  follow(context, *this);
  contexts_.push_back(&context);
}

void VirtualTime::detach(boost::asio::io_context& context) {
  std::erase(contexts_, &context);
}

void VirtualTime::run_ready() {
  // A context has nothing left to run after its turn until another one gives it work. Each turn costs a
  // system call.
  std::size_t idle = 0;
  for (std::size_t i = 0; idle < contexts_.size(); ++i) {
    // By index: work of one host may detach another.
    boost::asio::io_context& context = *contexts_[i % contexts_.size()];
    context.restart();
    idle = context.poll() > 0 ? 1 : idle + 1;
  }
}

// False: nothing is due until then.
bool VirtualTime::jump(SteadyTime until) {
  if (due_.empty() || due_.begin()->first > until) return false;
  const auto first = due_.begin();
  now_ = std::max(now_, first->first);
  auto due = std::move(first->second.second);
  tickets_.erase(first->second.first);
  due_.erase(first);
  due();
  return true;
}

void VirtualTime::run_for(Duration duration) {
  const SteadyTime until = now_ + duration;
  do run_ready();
  while (jump(until));
  now_ = until;
}

bool VirtualTime::run_until(const std::function<bool()>& condition, Duration longest) {
  const SteadyTime until = now_ + longest;
  do {
    run_ready();
    if (condition()) return true;
  } while (jump(until));
  now_ = until;
  return false;
}

}  // namespace spark::histories
