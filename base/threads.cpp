#include "base/threads.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace spark {

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return {Errc::Failed, std::strerror(ENOMEM), "", ENOMEM};
  } catch (const std::exception& known) {
    return {Errc::Failed, known.what(), ""};
  } catch (...) {
    return {Errc::Failed, "an unknown exception", ""};
  }
}

Result<std::size_t> run_in_threads(std::size_t threads, const std::function<void(std::size_t)>& work,
                                   const std::function<void()>& on_throw) {
  if (threads == 0) return 0U;
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](std::size_t number) {
    try {
      work(number);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!first) first = std::current_exception();
      if (on_throw) on_throw();
    }
  };
  std::size_t ran = 1;
  {
    std::vector<std::jthread> others;
    while (others.size() + 1 < threads) {
      try {
        others.emplace_back([&run, number = others.size() + 1] { run(number); });
      } catch (const std::exception&) {  // std::system_error, or no memory for the thread's own state
        break;
      }
    }
    run(0);
    ran += others.size();
  }
  if (first) return fail(error_of(first));
  return ran;
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace spark
