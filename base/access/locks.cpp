#include "base/access/locks.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"

namespace spark {
namespace {

constexpr std::chrono::milliseconds kPoll{20};

// Of the mount's file system. None if it is not listed.
std::optional<dev_t> device_of_mount(const SystemRoot& root, std::uint64_t mount) {
  const auto table = mounts::read_mount_table(root);
  if (!table) return std::nullopt;
  const auto found = std::ranges::find(*table, static_cast<int>(mount), &mounts::Mount::id);
  return found == table->end() ? std::nullopt : std::optional(found->device_number);
}

std::string process_in_words(const SystemRoot& root, const std::string& pid) {
  const std::filesystem::path process = root / ("proc/" + pid);
  struct stat info {};
  const bool is_known = ::stat(process.c_str(), &info) == 0;
  return printable(read_line_file(process / "comm").value_or("a process")) + " (pid " + pid +
         (is_known ? ", uid " + std::to_string(info.st_uid) : "") + ")";
}

}  // namespace

Result<UniqueFd> lock_private(const std::filesystem::path& path, std::chrono::milliseconds limit,
                              const std::string& doing) {
  const std::string shown = doing + ": locking " + printable(path.native());
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return fail_errno(errno, shown);
  const auto give_up = std::chrono::steady_clock::now() + limit;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return fail_errno(errno, shown);
    if (std::chrono::steady_clock::now() >= give_up) {
      const std::string holders = lock_holders_in_words(SystemRoot{}, {path});
      return fail(Errc::Unavailable,
                  shown + ": " + (holders.empty() ? "another process" : holders) + " has it",
                  "end that process if it hangs");
    }
    std::this_thread::sleep_for(kPoll);
  }
  return fd;
}

Result<> restrict_to(const std::filesystem::path& path, unsigned mode) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "looking at " + printable(path.native()));
  }
  const bool is_public = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  const unsigned beyond = info.st_mode & 0077U & ~mode;
  if (S_ISLNK(info.st_mode) || is_public || beyond == 0) return {};
  const std::string doing = "closing " + printable(path.native()) + " to other users";
  // Held, so that a link put in its place meanwhile is not followed. With O_PATH: to close a file that was
  // opened otherwise would end this process's locks on it.
  const UniqueFd held(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat now {};
  if (!held || ::fstat(held.get(), &now) != 0) return fail_errno(errno, doing);
  if (S_ISLNK(now.st_mode)) return {};
  const std::filesystem::path name = held_path(held);
  if (::chmod(name.c_str(), now.st_mode & 07777U & ~beyond) != 0 || ::fstat(held.get(), &now) != 0)
    return fail_errno(errno, doing);
  if ((now.st_mode & beyond) == 0) return {};
  return fail(Errc::Unsupported, doing + ": its file system does not keep modes", "put it on ext4 or xfs");
}

std::optional<LockedFile> locked_file(const SystemRoot& root, const std::filesystem::path& path) {
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_MNT_ID, &info) != 0)
    return std::nullopt;
  LockedFile file{::makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino};
  if ((info.stx_mask & STATX_MNT_ID) != 0) {
    if (const auto device = device_of_mount(root, info.stx_mnt_id)) file.device = *device;
  }
  return file;
}

// "3: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF", with device numbers in hexadecimal.
std::set<std::string> lock_holders(const SystemRoot& root, const LockedFile& file, std::string_view kind) {
  std::set<std::string> holders;
  const auto locks = read_file(root / "proc/locks");
  if (!locks) return holders;
  char name[64];
  std::snprintf(name, sizeof name, "%02x:%02x:%llu", ::major(file.device), ::minor(file.device),
                static_cast<unsigned long long>(file.inode));
  for (const std::string& line : split(*locks, '\n')) {
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    constexpr std::size_t kKind = 1, kProcess = 4, kFile = 5;
    if (words.size() > kFile && words[kKind] == kind && words[kFile] == name) holders.insert(words[kProcess]);
  }
  return holders;
}

std::string lock_holders_in_words(const SystemRoot& root, const std::vector<std::filesystem::path>& paths) {
  std::set<std::string> processes;
  for (const std::filesystem::path& path : paths) {
    const auto file = locked_file(root, path);
    if (!file) continue;
    processes.merge(lock_holders(root, *file, "FLOCK"));
    processes.merge(lock_holders(root, *file, "POSIX"));
  }
  processes.erase(std::to_string(::getpid()));
  std::vector<std::string> words;
  for (const std::string& pid : processes) words.push_back(process_in_words(root, pid));
  return join(words, " and ");
}

}  // namespace spark
