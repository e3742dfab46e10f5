// Random histories of the cache of one host: docs/testing.md.
#include <linux/capability.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>

#include "tests/histories/copies/host/drives.hpp"
#include "tests/histories/copies/worker/fault.hpp"
#include "tests/histories/copies/world/world.hpp"
#include "tests/histories/engine/program.hpp"

namespace {

using namespace spark::histories;

Area area() {
  Area area;
  area.name = "copies";
  for (const copies::StepRow& row : copies::all_steps()) area.actions.push_back({row.action, row.weight});
  area.longest = 30;
  area.make = [](std::uint64_t seed, const Story& story) -> std::unique_ptr<World> {
    return std::make_unique<copies::CopiesWorld>(seed, story);
  };
  return area;
}

// Else a verification spends more time on its buffer, 4 MiB that the kernel keeps in memory for it, than on
// the copy. Where a user's limit is low, the product does without.
void limit_locked_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
  (void)::syscall(SYS_capset, &header, sets);
  const rlimit limit{0, 0};
  (void)::setrlimit(RLIMIT_MEMLOCK, &limit);
}

// The world and its workers take turns: on one CPU they wake each other faster, above all on a busy computer.
void stay_on_one_cpu() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(std::max(::sched_getcpu(), 0)), &here);
  (void)::sched_setaffinity(0, sizeof here, &here);
}

// A process has one thread.
void make_sqlite_cheap() {
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

}  // namespace

int main(int argc, char** argv) {
  // With SPARK_STAGE_DEBUG in the environment, the daemon's log is between the lines of the story.
  if (std::getenv("SPARK_STAGE_DEBUG") == nullptr) spdlog::default_logger()->set_level(spdlog::level::off);
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // each worker would clear megabytes
  stay_on_one_cpu();
  limit_locked_memory();
  make_sqlite_cheap();
  try {
    copies::enter_own_namespace();
    if (const std::string why = copies::why_no_faults(); !why.empty()) throw std::runtime_error(why);
    return history_main(area(), argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
