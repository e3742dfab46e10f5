#include "staging/copy/partial/partial_area.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/file_lock.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/stale_locks.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// A killed process usually exits within milliseconds.
constexpr std::chrono::milliseconds kPoll{100}, kPatience{2'000};
constexpr char kLock[] = "lock", kState[] = "state";
constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE, of linux/fs.h

// The new name of a folder with a lock that will not be released; no area's own name begins with a dot.
std::filesystem::path left_behind(const std::filesystem::path& folder) {
  return folder.parent_path() / companion_name(folder.filename().native(), ".stuck");
}

bool is_full(const Error& error) {
  return error.number == ENOSPC || error.number == EDQUOT;
}

bool is_on_nfs(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) != 0 || info.f_type == NFS_SUPER_MAGIC;
}

std::string this_machine() {
  return read_line_file("/etc/machine-id").value_or("");
}

struct Holder {
  std::string host, boot, machine;  // empty: unknown

  bool has_this_name() const { return host == host_name(); }
  bool may_be_here() const {
    return host.empty() || (has_this_name() && (boot.empty() || boot == boot_id(SystemRoot{})));
  }
  bool is_namesake() const {
    const std::string here = this_machine();
    return has_this_name() && !machine.empty() && !here.empty() && machine != here;
  }
};

// For other hosts, which see it on NFS once it is flushed. Empty if it could not be written: then they don't
// know the name.
std::string write_holder(int fd) {
  std::string text = host_name() + "\n" + boot_id(SystemRoot{}) + "\n" + this_machine() + "\n";
  if (::ftruncate(fd, 0) != 0 || write_all(fd, text) != 0) return "";
  if (is_on_nfs(fd)) ::fdatasync(fd);
  return text;
}

Holder read_holder(const std::filesystem::path& file) {
  std::vector<std::string> lines = split(read_regular_file(file).value_or(""), '\n');
  lines.resize(3);
  return {std::move(lines[0]), std::move(lines[1]), std::move(lines[2])};
}

// It has the folder's name, so that no other partial copy can be taken for it.
std::string mark_of(const std::filesystem::path& folder) {
  return companion_name(folder.filename().native(), ".spark-mark");
}

}  // namespace

// The number marks it: fail_errno() makes no Unavailable of ENOLCK.
bool was_taken_over(const Error& error) {
  return error.kind == Errc::Unavailable && error.number == ENOLCK;
}

// Unavailable if another process has it, or has just removed it.
Result<PartialArea> PartialArea::acquire(const std::filesystem::path& folder, std::string& other_host) {
  const std::string shown = shown_path(folder);
  auto rest = OwnRest::make(folder, mark_of(folder), OwnRest::Unmarked::InOwnFolder);
  if (!rest) return rest.take_error();
  struct stat opened {
  }, named{};
  if (::fstat(rest->opened().get(), &opened) != 0) return fail_errno(errno, "looking at folder " + shown);
  if (::flock(rest->opened().get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "locking folder " + shown);
    return fail(Errc::Unavailable, "locking folder " + shown + ": another process is copying there");
  }
  PartialArea area(std::move(*rest));
  if (auto locked = area.lock_among_hosts(other_host); !locked) return locked.take_error();
  // The previous holder of the lock may have deleted the folder of this descriptor.
  const bool is_there = ::lstat(folder.c_str(), &named) == 0;
  if (!is_there && errno != ENOENT) return fail_errno(errno, "looking at folder " + shown);
  if (!is_there || !is_same_file(opened, named))
    return fail(Errc::Unavailable, "locking folder " + shown + ": it went away");
  if (auto taken = area.take_what_was_left(); !taken) return taken.take_error();
  return area;
}

Result<> PartialArea::lock_among_hosts(std::string& other_host) {
  const std::filesystem::path file = folder_ / kLock;
  const std::string doing = "locking folder " + shown_path(folder_);
  auto locked = lock_file(file, Holders::One);
  // Room has to be made on a full cache, which is not shared with other hosts.
  if (!locked && is_full(locked.error()) && !is_on_nfs(rest_.opened().get())) return {};
  if (!locked) return fail_with(std::move(locked.error()), doing);
  // To an NFS server two hosts of one name may be one that restarts, and its locks end. Both would write
  // here.
  if (*locked && is_on_nfs(rest_.opened().get()) && read_holder(file).is_namesake()) {
    return fail(Errc::Refused, doing + ": another host that is also called " + host_name() + " copies there",
                "give each host a name of its own; if that host is gone, delete this folder");
  }
  if (*locked) {
    host_lock_ = std::move(*locked);
    written_ = write_holder(host_lock_.get());
    return {};
  }
  const Holder holder = read_holder(file);
  if (holder.may_be_here()) return fail(Errc::Unavailable, doing + ": another process is copying there");
  other_host = holder.host;
  if (holder.has_this_name()) {
    return fail(
        Errc::Unavailable,
        doing + ": another host that is also called " + printable(holder.host) + " is copying there",
        "give each host a name of its own, since an NFS server may take hosts of one name for one; if "
        "this host had it before a restart, the server gives its lock up within two minutes");
  }
  return fail(Errc::Unavailable, doing + ": host " + printable(holder.host) + " is copying there",
              "choose another name for one of the two copies; if that host is off, the server gives its lock "
              "up within two minutes");
}

// Only another host's entry in the lock file proves that it has taken the folder over. A missing file does
// not: a volume that was taken down by force has none either, and a host that took over and ended has removed
// it.
Result<> PartialArea::check_held() const {
  const std::string shown = "folder " + printable(place_.native());
  struct stat held {
  }, named{};
  const bool is_there = ::fstat(rest_.opened().get(), &held) == 0 && ::lstat(place_.c_str(), &named) == 0;
  if (is_there ? !is_same_file(held, named) : errno == ENOENT)
    return fail(Errc::Unavailable, shown + " is not there any more",
                "its volume was taken down, or another user has renamed it or a folder above it");
  if (written_.empty()) return {};
  const auto now = read_regular_file(folder_ / kLock);
  if (!now && now.error().kind == Errc::NotFound)
    return fail(Errc::Unavailable, shown + " has no lock file any more",
                "its volume was taken down, or another host has sent to this name meanwhile");
  if (!now) return now.take_error();
  if (*now == written_) return {};
  const Holder holder = read_holder(folder_ / kLock);
  Error lost{Errc::Unavailable,
             shown + " was taken over by " +
                 (holder.host.empty() || holder.has_this_name() ? "another host"
                                                                : "host " + printable(holder.host)) +
                 ": the server gave up this host's lock",
             "an NFS server does so if a host does not reach it for minutes, or if two hosts have one name",
             ENOLCK};
  return fail(std::move(lost));
}

// False if the server gave up this host's lock, and another host has locked the file or made another one.
bool PartialArea::has_own_lock_file() const {
  const UniqueFd named(::openat(rest_.opened().get(), kLock, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat locked {
  }, there{};
  if (!named || ::fstat(host_lock_.get(), &locked) != 0 || ::fstat(named.get(), &there) != 0 ||
      !is_same_file(locked, there))
    return false;
  // The name could not be written on a full drive.
  if (written_.empty()) return read_holder(folder_ / kLock).may_be_here();
  const auto now = read_regular_file(folder_ / kLock);
  return now && *now == written_;
}

Result<PartialArea> PartialArea::open(const std::filesystem::path& folder, const StopFlag& stop) {
  std::chrono::milliseconds dying{0};
  for (;;) {
    std::string other_host;
    auto area = acquire(folder, other_host);
    if (area || area.error().kind != Errc::Unavailable || !other_host.empty()) return area;
    if (stop) return fail(Errc::Cancelled, area.error().what + "; waiting for it was interrupted");
    const auto locked = locked_file(SystemRoot{}, folder);
    const bool is_dying = locked && is_stale_lock(SystemRoot{}, *locked);
    dying = is_dying ? dying + kPoll : kPoll * 0;
    if (dying > kPatience) {
      if (auto left = leave_behind(folder); !left) return left.take_error();
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Result<> PartialArea::leave_behind(const std::filesystem::path& folder) {
  const std::filesystem::path other = left_behind(folder);
  const std::string doing = "leaving folder " + shown_path(folder) + " to a process that can't die";
  const auto made = OwnRest::make(other, mark_of(folder), OwnRest::Unmarked::InOwnFolder);
  if (!made) return made.take_error();
  // Another process may do the same, or was interrupted before the exchange. An empty folder means that the
  // exchange is still to be done.
  const auto names = made->names();
  if (!names) return names.take_error();
  if (!names->empty()) return {};
  const long done = ::syscall(SYS_renameat2, AT_FDCWD, folder.c_str(), AT_FDCWD, other.c_str(), kExchange);
  if (done != 0 && errno != ENOENT) return fail_errno(errno, doing);
  return {};
}

Result<> PartialArea::take_what_was_left() {
  auto left = look_at_left_behind(rest_.path());
  if (!left && left.error().kind == Errc::NotFound) return {};
  if (!left) return left.take_error();
  for (const char* name : {"state", "manifest", "journal", "replaced", "data"}) {
    auto taken = rename_to_new(left->folder() / name, folder_ / name);
    if (!taken && taken.error().number != EEXIST && taken.error().number != ENOENT) return taken;
  }
  return left->remove();
}

Result<OwnRest> PartialArea::look_at(const std::filesystem::path& folder) {
  return OwnRest::open(folder, mark_of(folder), OwnRest::Unmarked::InOwnFolder);
}

Result<OwnRest> PartialArea::look_at_left_behind(const std::filesystem::path& folder) {
  return OwnRest::open(left_behind(folder), mark_of(folder), OwnRest::Unmarked::InOwnFolder);
}

Result<PartialArea> PartialArea::try_open(const std::filesystem::path& folder) {
  std::string other_host;
  return acquire(folder, other_host);
}

Result<PartialArea> PartialArea::open_within(const std::filesystem::path& folder,
                                             std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto area = try_open(folder);
    if (area || area.error().kind != Errc::Unavailable) return area;
    if (std::chrono::steady_clock::now() >= give_up) return area;
    std::this_thread::sleep_for(kPoll);
  }
}

PartialArea::~PartialArea() {
  if (!rest_.opened() || (host_lock_ && !has_own_lock_file())) return;
  // NFS keeps a deleted file's name in its folder until it is closed.
  if (host_lock_) ::unlinkat(rest_.opened().get(), kLock, 0);
  host_lock_.reset();
  (void)rest_.remove_if_empty();
}

Result<> PartialArea::clear() {
  if (before_change) before_change();
  const auto names = rest_.names();
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    const bool stays = name == kLock || name == kState || name.starts_with(".nfs");  // a deleted file on NFS
    if (auto removed = stays ? Result<>() : remove_tree(folder_, name); !removed) return removed;
  }
  // Last: after an interruption the next attempt still knows the state of the data.
  return remove_tree(folder_, kState);
}

Result<> PartialArea::keep_only(const std::string& state) {
  const std::filesystem::path file = folder_ / "state";
  const auto recorded = read_regular_file(file, state.size() + 1);
  const bool has_none = !recorded && recorded.error().kind == Errc::NotFound;
  if (!recorded && !has_none && recorded.error().number != 0)
    return recorded.take_error();  // it may be of this state
  if (recorded ? *recorded == state : has_none && state.empty()) return {};
  if (auto cleared = clear(); !cleared || state.empty()) return cleared;
  return write_file_atomically(file, state, 0600);
}

}  // namespace spark::staging
