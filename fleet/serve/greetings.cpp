#include "fleet/serve/greetings.hpp"

namespace spark::fleet {

bool Greetings::enter(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto running = running_.try_emplace(address, 0).first;
  if (running->second >= most_) return false;
  ++running->second;
  return true;
}

void Greetings::leave(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto running = running_.find(address);
  if (--running->second == 0) running_.erase(running);
}

}  // namespace spark::fleet
