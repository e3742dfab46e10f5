#include "tests/histories/copies/worker/fault.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "tests/histories/copies/host/places.hpp"
#include "tests/support/failing_call.hpp"

namespace spark::histories::copies {
namespace {

using test::FileCall;

// Where a call names its file: by a path, a folder and a path, or a descriptor.
enum class By { Path, SecondPath, Folder, SecondFolder, Descriptor };

struct CallRow {
  int number;
  Calls calls;
  By by;
};

constexpr auto kRows = std::to_array<CallRow>({
#ifdef SYS_open
    {SYS_open, Calls::Opens, By::Path},
    {SYS_stat, Calls::Reads, By::Path},
    {SYS_lstat, Calls::Reads, By::Path},
    {SYS_mkdir, Calls::Names, By::Path},
    {SYS_rename, Calls::Names, By::Path},
    {SYS_unlink, Calls::Names, By::Path},
    {SYS_rmdir, Calls::Names, By::Path},
    {SYS_symlink, Calls::Names, By::SecondPath},
    {SYS_readlink, Calls::Reads, By::Path},
#endif
    {SYS_openat, Calls::Opens, By::Folder},
    {SYS_openat2, Calls::Opens, By::Folder},
    {SYS_fstat, Calls::Reads, By::Descriptor},
    {SYS_newfstatat, Calls::Reads, By::Folder},
    {SYS_statx, Calls::Reads, By::Folder},
    {SYS_readlinkat, Calls::Reads, By::Folder},
    {SYS_getdents64, Calls::Reads, By::Descriptor},
    {SYS_read, Calls::Reads, By::Descriptor},
    {SYS_pread64, Calls::Reads, By::Descriptor},
    {SYS_mkdirat, Calls::Names, By::Folder},
    {SYS_linkat, Calls::Names, By::SecondFolder},
    {SYS_symlinkat, Calls::Names, By::SecondPath},
    {SYS_renameat, Calls::Names, By::Folder},
    {SYS_renameat2, Calls::Names, By::Folder},
    {SYS_unlinkat, Calls::Names, By::Folder},
    {SYS_write, Calls::Writes, By::Descriptor},
    {SYS_pwrite64, Calls::Writes, By::Descriptor},
    {SYS_fallocate, Calls::Writes, By::Descriptor},
    {SYS_ftruncate, Calls::Writes, By::Descriptor},
    {SYS_fchmod, Calls::Attributes, By::Descriptor},
    {SYS_fchown, Calls::Attributes, By::Descriptor},
    {SYS_utimensat, Calls::Attributes, By::Folder},
    {SYS_flistxattr, Calls::Attributes, By::Descriptor},
    {SYS_fgetxattr, Calls::Attributes, By::Descriptor},
    {SYS_fsetxattr, Calls::Attributes, By::Descriptor},
    {SYS_fsync, Calls::Flushes, By::Descriptor},
    {SYS_fdatasync, Calls::Flushes, By::Descriptor},
    {SYS_syncfs, Calls::Flushes, By::Descriptor},
});

Fault armed;
std::function<void(bool)> pause_now;
unsigned counted = 0;

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_on(std::string_view path, Drive drive) {
  const bool on_state = is_below(path, places::kState),
             on_cache = is_below(path, places::kCache) || is_below(path, places::kDrive);
  const bool on_source = is_below(path, places::kRoot) && !on_state && !on_cache;
  switch (drive) {
    case Drive::Source:
      return on_source;
    case Drive::Cache:
      return on_cache;
    case Drive::State:
      return on_state;
    default:
      return on_source || on_cache || on_state;
  }
}

// Whether the descriptor is of a file on the drive.
bool is_open_on(long fd, Drive drive) {
  char name[32], path[512];
  std::snprintf(name, sizeof name, "/proc/self/fd/%ld", fd);
  const long length = test::call_now(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(name),
                                     reinterpret_cast<long>(path), sizeof path);
  return length > 0 && is_on({path, static_cast<std::size_t>(length)}, drive);
}

bool is_at(long folder, long path, Drive drive) {
  const std::string_view name(reinterpret_cast<const char*>(path));
  return name.starts_with('/') ? is_on(name, drive) : is_open_on(folder, drive);
}

bool concerns(const FileCall& call, const CallRow& row, Drive drive) {
  const long* argument = call.arguments;
  switch (row.by) {
    case By::Path:
      return is_at(AT_FDCWD, argument[0], drive);
    case By::SecondPath:
      return call.number == SYS_symlinkat ? is_at(argument[1], argument[2], drive)
                                          : is_at(AT_FDCWD, argument[1], drive);
    case By::Folder:
      if (argument[1] == 0) return is_open_on(argument[0], drive);  // futimens
      return is_at(argument[0], argument[1], drive);
    case By::SecondFolder:
      return is_at(argument[2], argument[3], drive);
    default:
      return is_open_on(argument[0], drive);
  }
}

// Errors that the call can have.
bool may_fail(const CallRow& row) {
  if (armed.kind != Fault::Kind::Fail || armed.error == EIO) return true;
  if (armed.error == EMFILE) return row.calls == Calls::Opens;
  return row.calls == Calls::Writes || row.calls == Calls::Names;  // of a full drive
}

std::optional<long> on_call(const FileCall& call) {
  for (const CallRow& row : kRows) {
    if (row.number != call.number) continue;
    const bool counts = (armed.calls == Calls::Any || armed.calls == row.calls) && may_fail(row);
    if (!counts || !concerns(call, row, armed.drive)) return std::nullopt;
    ++counted;
    if (armed.kind == Fault::Kind::Fail && armed.lasts && counted > armed.nth) return -armed.error;
    if (counted != armed.nth) return std::nullopt;
    if (armed.kind == Fault::Kind::Fail) return -armed.error;
    if (armed.kind == Fault::Kind::Kill) test::call_now(SYS_kill, ::getpid(), SIGKILL);
    pause_now(concerns(call, row, Drive::State));
    return std::nullopt;
  }
  return std::nullopt;
}

const char* name_of(Calls calls) {
  constexpr const char* kNames[] = {"call for a file",    "read",     "write", "change of a name",
                                    "attribute's access", "flushing", "open"};
  return kNames[static_cast<int>(calls)];
}

const char* name_of(Drive drive) {
  constexpr const char* kNames[] = {"any drive", "the source", "the cache's drive", "the state folder"};
  return kNames[static_cast<int>(drive)];
}

}  // namespace

std::string in_words(const Fault& fault) {
  if (fault.kind == Fault::Kind::None) return "nothing";
  std::string text = "at " + std::string(name_of(fault.calls)) + " number " + std::to_string(fault.nth) +
                     " on " + name_of(fault.drive);
  if (fault.kind == Fault::Kind::Kill) return text + " it is killed";
  if (fault.kind == Fault::Kind::Pause) return text + " it is held up";
  return text + (fault.lasts ? " and all later ones it gets " : " it gets ") + ::strerrorname_np(fault.error);
}

std::string arm(const Fault& fault, std::function<void(bool)> pause) {
  armed = fault;
  counted = 0;
  pause_now = std::move(pause);
  static constexpr auto kNumbers = [] {
    std::array<int, kRows.size()> numbers{};
    for (std::size_t i = 0; i < kRows.size(); ++i) numbers[i] = kRows[i].number;
    return numbers;
  }();
  return test::intercept_calls(kNumbers, on_call);
}

std::string why_no_faults() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(arm({}, {}).empty() ? 0 : 1);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0)
    return "workers can't have faults here: a process can't filter its system calls (seccomp)";
  return {};
}

}  // namespace spark::histories::copies
