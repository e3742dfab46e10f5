// What the C library tells this program about time, names and files. The verbs of workers ask the kernel
// itself: the program defines those functions of the C library, so that they see the simulated host.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace spark::histories {

// A call that changes names, or flushes, of the worker that runs now.
struct Fault {
  unsigned nth = 0;        // from 1; 0 means none
  int error = 0;           // that call fails with it; 0 means that the process ends there, as by SIGKILL
  bool is_forked = false;  // the worker runs in a child process, which alone may end
};

// One for the program: the C library has no other owner.
struct Libc {
  // Of the host for which something runs; none means the real ones.
  std::optional<std::int64_t> wall_ns;
  std::optional<std::int64_t> boot_s;  // when it booted
  // A worker's sleep takes no real time: its clock goes forward.
  std::atomic<std::int64_t> slept_ns = 0;
  unsigned boots = 0;  // of all hosts: each has a new boot ID then
  std::string host;
  bool is_user_mapped = false;  // root of a user namespace: files of the real root seem to be nobody's
  std::uint64_t next_uuid = 1;
  Fault fault;
  std::atomic<unsigned> calls = 0;     // that changed names or flushed, since the fault was set
  std::function<void()> interlude;     // instead of the fault: others work while that call waits
  std::function<void()> on_flush_all;  // syncfs
};
Libc& libc();

// The kernel sets files' times by its own clock. Times of simulated file systems are translated: what the
// kernel set is shown as the time of the simulated clock at which it was first seen. So every change is to be
// seen at once (see()). Times that a program set, all in the simulated era, stay as they are.
class FileTimes {
 public:
  using Now = std::function<std::int64_t()>;  // nanoseconds, by the clock that sets the times there

  // Simulated clocks show years after this one, and the kernel's an earlier one.
  static constexpr std::int64_t kEra = 2'366'841'600;  // 2045, in seconds

  void follow(dev_t device, Now now);
  void forget_all();
  void translate(struct stat& info);
  void translate(struct statx& info);
  // Looks at everything below the path, so that changes up to now get the present time.
  void see(const std::string& path);
  // Before a change: kernels without fine times give two changes within some milliseconds one time, and the
  // second would not be noticed. Waits for the next tick of such a kernel's clock.
  void wait_for_tick();
  void find_out_granularity(const std::string& folder);

 private:
  struct Seen {
    std::int64_t changed = 0, shown_changed = 0;  // ctime
    std::int64_t written = 0, shown_written = 0;  // mtime
    std::int64_t made = 0;                        // btime, as shown
  };
  // None if the device is not simulated.
  std::optional<Seen> shown(dev_t device, ino_t inode, std::int64_t written, std::int64_t changed);

  std::mutex mutex_;  // the engine looks at files from several threads
  std::map<dev_t, Now> clocks_;
  std::map<std::pair<dev_t, ino_t>, Seen> seen_;
  bool is_fine_ = true;
};
FileTimes& file_times();

}  // namespace spark::histories
