#include "base/threads.hpp"

#include <system_error>
#include <vector>

namespace spark {

std::size_t run_in_threads(std::size_t threads, const std::function<void(std::size_t)>& work) {
  if (threads == 0) return 0;
  std::vector<std::jthread> others;
  while (others.size() + 1 < threads) {
    try {
      others.emplace_back([&work, number = others.size() + 1] { work(number); });
    } catch (const std::system_error&) {
      break;
    }
  }
  work(0);
  return others.size() + 1;
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace spark
