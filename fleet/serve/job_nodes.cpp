#include "fleet/serve/job_nodes.hpp"

#include <algorithm>
#include <chrono>

namespace spark::fleet {
namespace {

constexpr std::chrono::seconds kLookUpAgain{30};

}  // namespace

bool JobNodes::has(const std::string& address) {
  {
    const std::scoped_lock lock(mutex_);
    if (found_.contains(address)) return true;
  }
  const auto nodes = noted_();
  const bool is_noted = std::ranges::any_of(nodes, [&](const JobNode& node) {
    return std::ranges::find(node.addresses, address) != node.addresses.end();
  });
  if (is_noted) return true;
  const std::scoped_lock lock(mutex_);
  is_stranger_here_ = true;
  stranger_at_ = std::chrono::steady_clock::now();
  stranger_asked_.notify_one();
  return false;
}

bool JobNodes::look_up_next(SteadyTime now) {
  SteadyTime stranger_at;
  {
    const std::scoped_lock lock(mutex_);
    stranger_at = stranger_at_;
  }
  auto nodes = noted_();
  std::ranges::reverse(nodes);
  const auto is_due = [&](const JobNode& node) {
    if (!node.addresses.empty()) return false;
    const auto search = searches_.find(node.name);
    if (search == searches_.end()) return true;
    const auto& [at, has_found] = search->second;
    return !has_found && now - at > kLookUpAgain && stranger_at > at;
  };
  const auto next = std::ranges::find_if(nodes, is_due);
  if (next == nodes.end()) return false;
  const auto addresses = resolve_(next->name).value_or(std::vector<std::string>());
  searches_[next->name] = {now, !addresses.empty()};
  const std::scoped_lock lock(mutex_);
  found_.insert(addresses.begin(), addresses.end());
  return true;
}

void JobNodes::wait_for_stranger(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  stranger_asked_.wait_for(lock, longest, [this] { return is_stranger_here_; });
  is_stranger_here_ = false;
}

}  // namespace spark::fleet
