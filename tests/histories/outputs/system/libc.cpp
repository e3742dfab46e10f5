#include "tests/histories/outputs/system/libc.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace spark::histories {

Libc& libc() {
  static Libc instance;
  return instance;
}

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// The kernel's structure is that of the C library on 64-bit systems.
int status_at(int folder, const char* path, struct stat* info, int flags) {
  const long result = ::syscall(SYS_newfstatat, folder, path, info, flags);
  if (result != 0) return -1;
  file_times().translate(*info);
  constexpr uid_t kNobody = 65534;
  if (libc().is_user_mapped && info->st_uid == kNobody) info->st_uid = 0;
  return 0;
}

// Whether the call fails, with errno set.
bool fails() {
  Libc& state = libc();
  if (++state.calls != state.fault.nth) return false;
  if (state.interlude) {
    const auto others = std::exchange(state.interlude, nullptr);
    others();
    return false;
  }
  if (state.fault.error == 0) {
    if (state.fault.is_forked) ::_exit(137);
    return false;
  }
  errno = state.fault.error;
  return true;
}

// A file with that text, instead of one of /proc.
int open_text(const std::string& text) {
  const int file = ::memfd_create("proc", MFD_CLOEXEC);
  if (file < 0) return file;
  const ssize_t written = ::write(file, text.data(), text.size());
  if (written < 0 || ::lseek(file, 0, SEEK_SET) < 0) return -1;
  return file;
}

// -1: the real file is meant.
int open_simulated(const char* path) {
  Libc& state = libc();
  if (std::strncmp(path, "/proc/", 6) != 0) return -1;
  if (std::strcmp(path, "/proc/stat") == 0 && state.boot_s)
    return open_text("cpu  1 2 3\nbtime " + std::to_string(*state.boot_s) + "\n");
  if (std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
    return open_text("boot " + std::to_string(state.boots) + "\n");
  if (std::strcmp(path, "/proc/sys/kernel/random/uuid") != 0) return -1;
  char text[64];
  (void)std::snprintf(text, sizeof text, "00000000-0000-4000-8000-%012llx\n",
                      static_cast<unsigned long long>(state.next_uuid++));
  return open_text(text);
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && fails()) return -1;
  if (const int simulated = open_simulated(path); simulated >= 0) return simulated;
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode));
}

int clock_time(clockid_t id, timespec* time) {
  const auto& wall = libc().wall_ns;
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  if (!wall) return real(id, time);
  if (id == CLOCK_REALTIME) {
    *time = {*wall / kSecond, *wall % kSecond};
  } else {
    if (const int failed = real(id, time); failed != 0 || id != CLOCK_MONOTONIC) return failed;
    const std::int64_t now = time->tv_sec * kSecond + time->tv_nsec + libc().slept_ns;
    *time = {now / kSecond, now % kSecond};
  }
  return 0;
}

int sleep_for(const timespec* wanted, timespec* rest) {
  if (!libc().wall_ns) return static_cast<int>(::syscall(SYS_nanosleep, wanted, rest));
  libc().slept_ns += wanted->tv_sec * kSecond + wanted->tv_nsec;
  return 0;
}

}  // namespace
}  // namespace spark::histories

// The names with 64 are those that headers give the functions on systems with large files.
using namespace spark::histories;  // NOLINT: the definitions below belong to no namespace

extern "C" {
int own_clock_gettime(clockid_t id, timespec* time) __asm__("clock_gettime");
int own_clock_gettime(clockid_t id, timespec* time) {
  return clock_time(id, time);
}

int own_nanosleep(const timespec* wanted, timespec* rest) __asm__("nanosleep");
int own_nanosleep(const timespec* wanted, timespec* rest) {
  return sleep_for(wanted, rest);
}

// Names of temporary files have it.
pid_t own_getpid() __asm__("getpid");
pid_t own_getpid() {
  return libc().wall_ns ? 1000 : static_cast<pid_t>(::syscall(SYS_getpid));
}

int own_gethostname(char* name, size_t size) __asm__("gethostname");
int own_gethostname(char* name, size_t size) {
  (void)std::snprintf(name, size, "%s", libc().host.c_str());
  return 0;
}

int own_stat(const char* path, struct stat* info) __asm__("stat");
int own_stat(const char* path, struct stat* info) {
  return status_at(AT_FDCWD, path, info, 0);
}
int own_stat64(const char* path, struct stat* info) __asm__("stat64");
int own_stat64(const char* path, struct stat* info) {
  return status_at(AT_FDCWD, path, info, 0);
}
int own_lstat(const char* path, struct stat* info) __asm__("lstat");
int own_lstat(const char* path, struct stat* info) {
  return status_at(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}
int own_lstat64(const char* path, struct stat* info) __asm__("lstat64");
int own_lstat64(const char* path, struct stat* info) {
  return status_at(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}
int own_fstat(int file, struct stat* info) __asm__("fstat");
int own_fstat(int file, struct stat* info) {
  return status_at(file, "", info, AT_EMPTY_PATH);
}
int own_fstat64(int file, struct stat* info) __asm__("fstat64");
int own_fstat64(int file, struct stat* info) {
  return status_at(file, "", info, AT_EMPTY_PATH);
}
int own_fstatat(int folder, const char* path, struct stat* info, int flags) __asm__("fstatat");
int own_fstatat(int folder, const char* path, struct stat* info, int flags) {
  return status_at(folder, path, info, flags);
}
int own_fstatat64(int folder, const char* path, struct stat* info, int flags) __asm__("fstatat64");
int own_fstatat64(int folder, const char* path, struct stat* info, int flags) {
  return status_at(folder, path, info, flags);
}
int own_statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) __asm__("statx");
int own_statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) {
  const long result =
      ::syscall(SYS_statx, folder, path, flags, mask | STATX_INO | STATX_MTIME | STATX_CTIME, info);
  if (result == 0) file_times().translate(*info);
  return static_cast<int>(result);
}

int own_open(const char* path, int flags, ...) __asm__("open");
int own_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int own_open64(const char* path, int flags, ...) __asm__("open64");
int own_open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int own_openat64(int folder, const char* path, int flags, ...) __asm__("openat64");
int own_openat64(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(folder, path, flags, mode);
}

int own_rename(const char* from, const char* to) __asm__("rename");
int own_rename(const char* from, const char* to) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int own_renameat(int from_folder, const char* from, int to_folder, const char* to) __asm__("renameat");
int own_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}
int own_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                  unsigned flags) __asm__("renameat2");
int own_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
int own_unlink(const char* path) __asm__("unlink");
int own_unlink(const char* path) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int own_unlinkat(int folder, const char* path, int flags) __asm__("unlinkat");
int own_unlinkat(int folder, const char* path, int flags) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}
int own_mkdirat(int folder, const char* path, mode_t mode) __asm__("mkdirat");
int own_mkdirat(int folder, const char* path, mode_t mode) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_mkdirat, folder, path, mode));
}
int own_mkdir(const char* path, mode_t mode) __asm__("mkdir");
int own_mkdir(const char* path, mode_t mode) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int own_symlink(const char* target, const char* path) __asm__("symlink");
int own_symlink(const char* target, const char* path) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_symlinkat, target, AT_FDCWD, path));
}
int own_fsync(int file) __asm__("fsync");
int own_fsync(int file) {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_fsync, file));
}
int own_syncfs(int file) __asm__("syncfs");
int own_syncfs(int file) {
  if (fails()) return -1;
  if (libc().on_flush_all) libc().on_flush_all();
  return static_cast<int>(::syscall(SYS_syncfs, file));
}
}
