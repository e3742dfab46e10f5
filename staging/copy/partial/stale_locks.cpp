#include "staging/copy/partial/stale_locks.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

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
  const auto threads = list_folder(root / ("proc/" + pid + "/task"), error);
  if (error) return false;  // in another process namespace, or just ended: the lock decides
  return !threads.empty() && std::ranges::all_of(threads, is_thread_dying);
}

}  // namespace

bool is_stale_lock(const SystemRoot& root, const LockedFile& file) {
  const std::set<std::string> holders = lock_holders(root, file, "FLOCK");
  for (const std::string& pid : holders) {
    if (!is_process_dying(root, pid)) return false;
  }
  return !holders.empty();
}

}  // namespace spark::staging
