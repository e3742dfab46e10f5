#include "bench/demand/process_reads.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "base/kernel/process_stat.hpp"
#include "base/text.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRing = "anon_inode:[io_uring]";

// The number after "NAME:" at the start of a line; blanks may come between.
std::optional<std::uint64_t> field(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    return parse_number<std::uint64_t>(trim(std::string_view(line).substr(name.size())));
  }
  return std::nullopt;
}

struct Child {
  pid_t pid;
  std::string name;
};

// Children by parent, of every process.
std::multimap<pid_t, Child> all_processes(const SystemRoot& root) {
  std::multimap<pid_t, Child> children;
  for (const std::string& name : names_in_folder(root / "proc")) {
    const auto pid = parse_number<pid_t>(name);
    if (!pid) continue;
    const auto stat = read_process_stat(root, name);
    const auto parent = stat ? stat->field<pid_t>(4) : std::nullopt;
    if (parent) children.emplace(*parent, Child{*pid, stat->name});
  }
  return children;
}

// Whether a ring of io_uring has completed a request: some programs make one and read by calls. Yes if the
// kernel does not tell.
bool is_used_ring(const fs::path& process, const std::string& descriptor) {
  const auto info = read_file(process / "fdinfo" / descriptor);
  return !info || field(*info, "CqTail:").value_or(1) != 0;
}

// Of "flags:\t0140000", octal.
bool is_direct(std::string_view fdinfo) {
  for (const std::string& line : split(fdinfo, '\n'))
    if (line.starts_with("flags:"))
      return (std::strtoul(line.c_str() + std::strlen("flags:"), nullptr, 8) & O_DIRECT) != 0;
  return false;
}

void add_files(const fs::path& process, pid_t pid, ProcessReads& reads) {
  for (const std::string& name : names_in_folder(process / "fd")) {
    const auto fd = parse_number<int>(name);
    std::error_code error;
    const fs::path target = fs::read_symlink(process / "fd" / name, error);
    if (target == kRing) {
      reads.has_ring = true;
      reads.is_asynchronous |= is_used_ring(process, name);
    }
    if (!fd || error || !target.is_absolute() || target.string().starts_with("/dev/")) continue;
    struct statx status {};
    // Cached attributes only: the kernel sends no request to a network file system.
    if (::statx(AT_FDCWD, (process / "fd" / name).c_str(), AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE,
                &status) != 0 ||
        !S_ISREG(status.stx_mode)) {
      continue;
    }
    const auto info = read_file(process / "fdinfo" / name);
    const auto position = info ? field(*info, "pos:") : std::nullopt;
    if (position)
      reads.files.push_back({pid, *fd, target.string(), status.stx_size, *position, is_direct(*info)});
  }
}

// Shared memory has names like those of files that are deleted.
bool is_memory(const std::string& path) {
  return path.ends_with(" (deleted)") || path.starts_with("/dev/");
}

// "7f00-7f10 r--p 00000000 08:01 123   /data/a.arrow"
void add_mapped(const fs::path& process, ProcessReads& reads) {
  const auto maps = read_file(process / "maps");
  if (!maps) return;
  std::map<std::string, Bytes> files;
  std::set<std::string> programs;  // and libraries
  bool has_ring = false;
  for (const std::string& line : split(*maps, '\n')) {
    has_ring |= line.ends_with(kRing);
    const std::size_t slash = line.find('/'), dash = line.find('-'), blank = line.find(' ');
    if (slash == std::string::npos || dash > blank || blank + 4 > line.size()) continue;
    const std::string path = line.substr(slash);
    if (path.starts_with("/[aio]")) reads.is_asynchronous = true;
    if (line[blank + 3] == 'x') programs.insert(path);
    Bytes begin = 0, end = 0;
    std::from_chars(line.data(), line.data() + dash, begin, 16);
    std::from_chars(line.data() + dash + 1, line.data() + blank, end, 16);
    files[path] += end > begin ? end - begin : 0;
  }
  // A program may close the descriptor of a ring that it uses.
  if (has_ring && !reads.has_ring) reads.is_asynchronous = true;
  for (const auto& [path, bytes] : files) {
    if (!programs.contains(path) && !is_memory(path)) reads.mapped.push_back({path, bytes});
  }
}

}  // namespace

std::optional<IoCounters> parse_process_io(std::string_view text) {
  const auto called = field(text, "rchar:");
  const auto from_storage = field(text, "read_bytes:");
  if (!called || !from_storage) return std::nullopt;
  return IoCounters{*called, *from_storage};
}

std::map<pid_t, ProcessReads> read_processes_below(const SystemRoot& root, pid_t first) {
  const auto children = all_processes(root);
  std::map<pid_t, ProcessReads> processes;
  std::vector<pid_t> waiting = {first};
  while (!waiting.empty()) {
    const pid_t parent = waiting.back();
    waiting.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      const pid_t pid = child->second.pid;
      if (processes.contains(pid)) continue;
      waiting.push_back(pid);
      const fs::path folder = root / ("proc/" + std::to_string(pid));
      const auto io = read_file(folder / "io");
      const auto counters = io ? parse_process_io(*io) : std::nullopt;
      if (!counters) continue;
      ProcessReads reads{parent, counters->called, counters->from_storage, {}, {}, child->second.name, false};
      add_files(folder, pid, reads);
      add_mapped(folder, reads);
      processes.emplace(pid, std::move(reads));
    }
  }
  return processes;
}

std::optional<std::uint64_t> storage_pressure(const SystemRoot& root) {
  const auto text = read_file(root / "proc/pressure/io");
  if (!text || !text->starts_with("some ")) return std::nullopt;
  const std::string line = text->substr(0, text->find('\n'));
  const std::size_t total = line.find("total=");
  return total == std::string::npos ? std::nullopt : parse_number<std::uint64_t>(line.substr(total + 6));
}

}  // namespace spark::bench
