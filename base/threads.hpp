// Threads where there may be too few of them: a limit on processes (RLIMIT_NPROC, pids.max) ends no program.
// The only code of ours that makes threads, beside std::async with both of its policies.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

namespace spark {

// Set from another thread or a signal handler: whoever looks at it ends soon.
using StopFlag = std::atomic<bool>;

// Runs work(0) … work(threads - 1), each once: work(0) on the caller's thread, the others beside it. Where
// the system allows no more threads, the rest is not run at all; `work` takes tasks from a common stock until
// there are none, so that any number of threads, down to the caller's own, does all of it. Returns how many
// ran.
std::size_t run_in_threads(std::size_t threads, const std::function<void(std::size_t)>& work);

// A thread in the background, or none (not joinable) where the system allows no more.
std::thread start_thread(std::function<void()> work);

}  // namespace spark
