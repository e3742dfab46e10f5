#include "fleet/transport/name_service.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>

#include "base/threads.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kThreads = 8;  // so that a few names without an answer hold up no others

// As getnameinfo() writes it, which the addresses of connections are compared with: "FD00:0::2" is "fd00::2".
std::optional<std::string> canonical_address(const std::string& text) {
  for (const int family : {AF_INET, AF_INET6}) {
    in6_addr address{};
    char canonical[INET6_ADDRSTRLEN];
    if (::inet_pton(family, text.c_str(), &address) == 1 &&
        ::inet_ntop(family, &address, canonical, sizeof canonical) != nullptr)
      return canonical;
  }
  return std::nullopt;
}

}  // namespace

struct NameService::State {
  Resolve resolve;
  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  std::deque<std::string> waiting;
  std::set<std::string> pending;  // waiting or being looked up
  std::size_t threads = 0;
  FoundNames found;

  void work() {
    std::unique_lock lock(mutex);
    while (!waiting.empty()) {
      const std::string name = waiting.front();
      waiting.pop_front();
      lock.unlock();
      auto addresses = no_throw([&] { return resolve(name); });
      lock.lock();
      if (addresses) found[name] = std::move(*addresses);
      pending.erase(name);
      changed.notify_all();
    }
    --threads;
  }
};

NameService::NameService(Resolve resolve) : state_(std::make_shared<State>()) {
  state_->resolve = std::move(resolve);
}

FoundNames NameService::find(const std::vector<std::string>& names, std::chrono::milliseconds limit) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  for (const std::string& name : names) {
    if (auto address = canonical_address(name)) {
      state.found[name] = {std::move(*address)};
    } else if (state.pending.insert(name).second) {
      state.waiting.push_back(name);
    }
  }
  while (state.threads < std::min(kThreads, state.pending.size())) {
    auto thread = start_thread([all = state_] { all->work(); });
    if (!thread.joinable()) break;
    thread.detach();
    ++state.threads;
  }
  const auto is_done = [&] {
    return std::ranges::none_of(names, [&](const auto& name) { return state.pending.contains(name); });
  };
  if (state.threads > 0) state.changed.wait_for(lock, limit, is_done);
  FoundNames found;
  for (const std::string& name : names)
    if (const auto one = state.found.find(name); one != state.found.end()) found.insert(*one);
  return found;
}

bool is_address(const std::string& text) {
  return canonical_address(text).has_value();
}

}  // namespace spark::fleet
