#include "fleet/transport/name_service.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "base/threads.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kThreads = 8;  // so that a few names without an answer hold up no others

// Shared with threads that may outlive the call, because a wait for a name service can't be interrupted.
struct Search {
  std::vector<std::string> names;
  Resolve resolve;
  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  std::size_t next = 0, left = 0;
  bool is_over = false;
  std::map<std::string, std::vector<std::string>> found;
};

void work(Search& search) {
  std::unique_lock lock(search.mutex);
  while (!search.is_over && search.next < search.names.size()) {
    const std::string name = search.names[search.next++];
    lock.unlock();
    auto addresses = no_throw([&] { return search.resolve(name); });
    lock.lock();
    if (addresses) search.found[name] = std::move(*addresses);
    if (--search.left == 0) search.changed.notify_all();
  }
}

}  // namespace

std::map<std::string, std::vector<std::string>> resolve_all(const std::vector<std::string>& names,
                                                            std::chrono::milliseconds limit,
                                                            const Resolve& resolve) {
  if (names.empty()) return {};
  const auto search = std::make_shared<Search>();
  search->names = names;
  search->resolve = resolve;
  search->left = names.size();
  std::size_t threads = 0;
  for (; threads < std::min(kThreads, names.size()); ++threads) {
    auto thread = start_thread([search] { work(*search); });
    if (!thread.joinable()) break;
    thread.detach();
  }
  std::unique_lock lock(search->mutex);
  if (threads > 0) search->changed.wait_for(lock, limit, [&] { return search->left == 0; });
  search->is_over = true;
  return search->found;
}

}  // namespace spark::fleet
