// The page cache: on a Spark it is the GPU's memory.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "staging/files/io/meminfo.hpp"

namespace spark::doctor {
namespace {

constexpr std::size_t kMostGroups = 5000, kNamed = 3;

// The page cache of a control group's processes.
Bytes page_cache_of(const std::filesystem::path& group) {
  const auto text = read_file(group / "memory.stat");
  for (const std::string& line : split(text.value_or(""), '\n')) {
    if (line.starts_with("file ")) return std::strtoull(line.c_str() + 5, nullptr, 10);
  }
  return 0;
}

// Services, sessions and containers: a group's figure holds those below it, so the deepest that still has
// most of its parent's is the one to name.
std::vector<std::pair<Bytes, std::string>> biggest_users(const SystemRoot& root) {
  std::vector<std::pair<Bytes, std::string>> users;
  std::error_code error;
  std::size_t seen = 0;
  using Walk = std::filesystem::recursive_directory_iterator;
  const auto quietly = std::filesystem::directory_options::skip_permission_denied;
  for (Walk group(root / "sys/fs/cgroup", quietly, error);
       !error && group != Walk() && ++seen < kMostGroups * 50; group.increment(error)) {
    if (!group->is_directory(error)) continue;
    const std::string name = group->path().filename().native();
    const bool is_leaf = name.ends_with(".service") || name.ends_with(".scope");
    if (!is_leaf) continue;
    if (const Bytes cached = page_cache_of(group->path()); cached > 0) users.emplace_back(cached, name);
    if (users.size() >= kMostGroups) break;
  }
  std::sort(users.rbegin(), users.rend());
  users.resize(std::min(users.size(), kNamed));
  return users;
}

}  // namespace

void check_memory(const Host& host, Report& report) {
  const auto value = [&](const char* name) { return staging::read_meminfo(host.root, name); };
  const Bytes total = value("MemTotal"), free = value("MemFree"), shared = value("Shmem");
  const Bytes cached = value("Cached") > shared ? value("Cached") - shared : 0;
  const Bytes unwritten = value("Dirty") + value("Writeback");
  if (total == 0) return;
  const std::size_t before = report.findings.size();
  if (cached > total / 2 && free < total / 4) {
    std::vector<std::string> users;
    for (const auto& [bytes, name] : biggest_users(host.root)) {
      users.push_back(printable(name) + " " + format_bytes(bytes));
    }
    report.note(
        "memory",
        format_bytes(cached) + " of " + format_bytes(total) + " is page cache, " + format_bytes(free) +
            " is free" + (users.empty() ? "" : "; most of it: " + join(users, ", ")),
        "on a Spark the GPU can use only free memory: a model that needs more fails to load, or loads slowly",
        "sync; echo 1 | sudo tee /proc/sys/vm/drop_caches");
  }
  if (unwritten > total / 10) {
    report.note("memory", format_bytes(unwritten) + " waits to be written to disk",
                "it can't be freed before that, and a power cut loses it", "sync");
  }
  report.fine_since(before,
                    "memory (" + format_bytes(free) + " free, " + format_bytes(cached) + " page cache)");
}

}  // namespace spark::doctor
