#include "staging/copy/partial/stale_locks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "base/text.hpp"

namespace spark::staging {
namespace {

// "3: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF", with device numbers in hexadecimal.
std::set<std::string> holders_of(const SystemRoot& root, const LockedFile& file) {
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
    if (words.size() > kFile && words[kKind] == "FLOCK" && words[kFile] == name)
      holders.insert(words[kProcess]);
  }
  return holders;
}

bool is_thread_dying(const std::filesystem::path& thread) {
  const auto status = read_file(thread / "status");
  if (!status) return true;  // it has ended meanwhile
  for (const std::string& line : split(*status, '\n')) {
    if (line.starts_with("State:\tZ") || line.starts_with("State:\tX")) return true;
    if (!line.starts_with("SigPnd:\t") && !line.starts_with("ShdPnd:\t")) continue;
    const auto pending = std::strtoull(line.c_str() + sizeof "SigPnd:", nullptr, 16);
    if ((pending >> (SIGKILL - 1) & 1) != 0) return true;
  }
  return false;
}

bool is_process_dying(const SystemRoot& root, const std::string& pid) {
  std::error_code error;
  std::filesystem::directory_iterator threads(root / ("proc/" + pid + "/task"), error);
  if (error) return false;  // in another process namespace, or just ended: the lock decides
  bool has_threads = false;
  for (const auto& thread : threads) {
    has_threads = true;
    if (!is_thread_dying(thread.path())) return false;
  }
  return has_threads;
}

// "36 25 0:31 / /cache rw …": the mount with that number, and the device of its file system. None if it is
// not listed.
std::optional<dev_t> device_of_mount(const SystemRoot& root, std::uint64_t mount) {
  const auto table = read_file(root / "proc/self/mountinfo");
  if (!table) return std::nullopt;
  const std::string start = std::to_string(mount) + " ";
  for (const std::string& line : split(*table, '\n')) {
    unsigned major = 0, minor = 0;
    if (line.starts_with(start) && std::sscanf(line.c_str(), "%*u %*u %u:%u", &major, &minor) == 2)
      return ::makedev(major, minor);
  }
  return std::nullopt;
}

}  // namespace

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

bool is_stale_lock(const SystemRoot& root, const LockedFile& file) {
  const std::set<std::string> holders = holders_of(root, file);
  for (const std::string& pid : holders) {
    if (!is_process_dying(root, pid)) return false;
  }
  return !holders.empty();
}

}  // namespace spark::staging
