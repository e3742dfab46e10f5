#include "tests/histories/copies/worker/simulated_system.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <optional>
#include <random>

namespace spark::histories::copies {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// A worker's own clock moves by this at each read, so that a loop that waits for a time ends.
constexpr std::int64_t kTick = 1'000;

timespec from_ns(std::int64_t ns) {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

void sleep_virtually(std::int64_t ns) {
  simulated().sleep(ns);
}

int clock_now(clockid_t clock, timespec* time) {
  SimulatedSystem& system = simulated();
  if (clock == CLOCK_REALTIME && system.wall_ns != 0) {
    *time = from_ns(system.wall_ns);
    return 0;
  }
  if (clock == CLOCK_MONOTONIC && system.is_in_worker()) {
    *time = from_ns(system.steady_ns += kTick);
    return 0;
  }
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

// Only workers see it: the world itself asks the kernel.
std::optional<timespec> changed(const FileKey& file) {
  const SimulatedSystem& system = simulated();
  const auto found = system.changed_ns.find(file);
  if (!system.is_in_worker() || found == system.changed_ns.end()) return std::nullopt;
  return from_ns(found->second);
}

void put_changed(struct statx& info) {
  const auto time = changed({::makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino});
  if (!time) return;
  info.stx_ctime.tv_sec = time->tv_sec;
  info.stx_ctime.tv_nsec = static_cast<std::uint32_t>(time->tv_nsec);
}

int look(int folder, const char* path, struct stat* info, int flags) {
  const int done = static_cast<int>(::syscall(SYS_newfstatat, folder, path, info, flags));
  if (done != 0) return done;
  if (const auto time = changed({info->st_dev, info->st_ino})) info->st_ctim = *time;
  return 0;
}

}  // namespace

SimulatedSystem& simulated() {
  static SimulatedSystem system;
  return system;
}

}  // namespace spark::histories::copies

using spark::histories::copies::simulated;
using spark::histories::copies::SimulatedSystem;

// The definitions of a program precede those of its libraries.
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  return spark::histories::copies::clock_now(clock, time);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  if (!simulated().is_in_worker() || flags != 0)
    return ::syscall(SYS_clock_nanosleep, clock, flags, time, rest) == 0 ? 0 : errno;
  spark::histories::copies::sleep_virtually(time->tv_sec * 1'000'000'000LL + time->tv_nsec);
  return 0;
}

int nanosleep(const timespec* time, timespec* rest) {
  if (!simulated().is_in_worker()) return static_cast<int>(::syscall(SYS_nanosleep, time, rest));
  return clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
}

int usleep(useconds_t time) {
  const timespec wanted{static_cast<time_t>(time / 1'000'000), static_cast<long>(time % 1'000'000) * 1'000};
  return nanosleep(&wanted, nullptr);
}

// A worker draws other numbers than one that began at another time.
ssize_t getrandom(void* bytes, size_t length, unsigned /*flags*/) {
  auto& system = simulated();
  std::minstd_rand draw(
      static_cast<unsigned>(system.random++ * 7919 + static_cast<std::uint64_t>(system.steady_ns / 1000)));
  for (size_t i = 0; i < length; ++i)
    static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(draw() >> 8);
  return static_cast<ssize_t>(length);
}

pid_t getppid() noexcept {
  const pid_t daemon = simulated().daemon;
  return simulated().is_in_worker() && daemon != 0 ? daemon : static_cast<pid_t>(::syscall(SYS_getppid));
}

int statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) noexcept {
  const int done = static_cast<int>(::syscall(SYS_statx, folder, path, flags, mask, info));
  if (done == 0) spark::histories::copies::put_changed(*info);
  return done;
}

int unshare(int flags) noexcept {
  const SimulatedSystem& system = simulated();
  const bool is_ready = system.is_in_worker() && flags == CLONE_NEWNS && system.worker_namespace >= 0;
  return is_ready ? ::setns(system.worker_namespace, CLONE_NEWNS)
                  : static_cast<int>(::syscall(SYS_unshare, flags));
}

// A worker that waits for another one's lock must let that one go on.
int flock(int file, int operation) noexcept {
  constexpr timespec kLook{0, 10'000'000};
  const bool waits = simulated().is_in_worker() && (operation & (LOCK_NB | LOCK_UN)) == 0;
  for (;;) {
    const long done = ::syscall(SYS_flock, file, waits ? operation | LOCK_NB : operation);
    if (done == 0 || !waits || errno != EWOULDBLOCK) return static_cast<int>(done);
    nanosleep(&kLook, nullptr);
  }
}

int fstatat(int folder, const char* path, struct stat* info, int flags) noexcept {
  return spark::histories::copies::look(folder, path, info, flags);
}

int fstat(int file, struct stat* info) noexcept {
  return spark::histories::copies::look(file, "", info, AT_EMPTY_PATH);
}

int lstat(const char* path, struct stat* info) noexcept {
  return spark::histories::copies::look(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

int stat(const char* path, struct stat* info) noexcept {
  return spark::histories::copies::look(AT_FDCWD, path, info, 0);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                   void* argument) noexcept {
  if (simulated().is_in_worker()) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, work, argument);
}

}  // extern "C"
