#include "daemon/workers/priority.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::workers {
namespace {

// Not every distribution's headers include linux/ioprio.h.
constexpr int kWhoProcess = 1, kClassShift = 13, kClassNone = 0, kClassIdle = 3, kLevel = 7;
constexpr int kLowestNice = 19;

std::set<pid_t> threads_of(pid_t pid) {
  std::set<pid_t> threads;
  for (const std::string& name : names_in_folder("/proc/" + std::to_string(pid) + "/task"))
    if (const auto thread = parse_number<pid_t>(name)) threads.insert(*thread);
  return threads;
}

Result<> set_thread(pid_t thread, Priority priority) {
  const bool idle = priority != Priority::Normal;
  const int io = idle ? kClassIdle << kClassShift | kLevel : kClassNone << kClassShift;
  const std::string what = "setting the priority of thread " + std::to_string(thread);
  if (::syscall(SYS_ioprio_set, kWhoProcess, thread, io) != 0 && errno != ESRCH)
    return fail_errno(errno, what);
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), idle ? kLowestNice : 0) != 0 && errno != ESRCH)
    return fail_errno(errno, what);
  const int policy = priority == Priority::Background ? SCHED_IDLE : SCHED_OTHER;
  const sched_param no_level{};  // both policies have none
  if (::sched_setscheduler(thread, policy, &no_level) != 0 && errno != ESRCH) return fail_errno(errno, what);
  return {};
}

}  // namespace

Result<> set_priority(pid_t pid, Priority priority) {
  // A new thread inherits from its creator: repeat until no new thread appears, otherwise one might be
  // missed.
  std::set<pid_t> done;
  for (bool found = true; found;) {
    found = false;
    for (const pid_t thread : threads_of(pid)) {
      if (!done.insert(thread).second) continue;
      found = true;
      if (auto set = set_thread(thread, priority); !set) return set;
    }
  }
  return {};
}

}  // namespace spark::workers
