#include "bench/files/scratch.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/json.hpp"
#include "base/kernel/process_stat.hpp"
#include "base/text.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

// A run writes the marker milliseconds after mkdir(). A folder still unmarked after this time is a leftover.
constexpr std::int64_t kUnmarkedSeconds = 600;

// 0 if there is no such process.
std::uint64_t start_ticks_of(pid_t pid) {
  const auto stat = read_process_stat(SystemRoot{}, std::to_string(pid));
  return stat ? stat->field<std::uint64_t>(22).value_or(0) : 0;
}

std::string pid_namespace() {
  std::error_code error;
  const fs::path link = fs::read_symlink("/proc/self/ns/pid", error);
  return error ? "unknown" : link.string();
}

std::string marker_of(const Owner& owner) {
  json::object marker = to_message(owner);
  marker["program"] = "spark-stage bench";
  return pretty(marker) + "\n";
}

// Any user may have placed the marker: follow no link and wait for no FIFO.
Result<std::string> read_marker(const std::string& folder) {
  const std::string path = folder + "/" + kScratchMarker;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(errno, "reading " + printable(path));
  std::string text(4096, '\0');
  const ssize_t got = S_ISREG(status.st_mode) ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

Result<Owner> read_owner(const std::string& folder) {
  auto text = read_marker(folder);
  if (!text) return text.take_error();
  auto marker = parse_json_object(*text);
  if (!marker) return marker.take_error();
  Owner owner;
  read_present(*marker, owner);
  if (owner.pid == 0 || owner.expires == 0) return fail(Errc::Invalid, "no benchmark's marker");
  return owner;
}

std::vector<std::string> scratch_files() {
  std::vector<std::string> names = {kScratchData};
  for (int i = 1; i < 10; ++i) names.push_back(kScratchData + std::to_string(i));
  names.emplace_back(kScratchMarker);
  return names;
}

// The marker is made first and deleted last. Who may rename there could give the name to any folder.
Result<> remove_unmarked(const std::string& folder) {
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, "removing " + printable(folder) + ", which has no mark of a benchmark",
                    "look at it and remove it by hand");
}

bool is_leftover(const std::string& folder, std::int64_t changed, std::int64_t now) {
  const auto owner = read_owner(folder);
  return owner ? is_over(*owner, now) : now - changed > kUnmarkedSeconds;
}

}  // namespace

Owner this_process(std::int64_t expires) {
  return {::getpid(), start_ticks_of(::getpid()), boot_id(SystemRoot{}), pid_namespace(), expires};
}

bool is_over(const Owner& owner, std::int64_t now) {
  if (owner.boot_id == boot_id(SystemRoot{}) && owner.pid_namespace == pid_namespace()) {
    return start_ticks_of(owner.pid) != owner.start_ticks;
  }
  return now > owner.expires;
}

std::string new_scratch_name() {
  constexpr std::string_view kLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  std::array<unsigned char, 8> random{};
  while (::getrandom(random.data(), random.size(), 0) < 0 && errno == EINTR) {
  }
  std::string name = kScratchPrefix;
  for (const unsigned char byte : random) name += kLetters[byte % kLetters.size()];
  return name;
}

Result<> make_scratch(const std::string& folder, const Owner& owner) {
  if (::mkdir(folder.c_str(), 0700) != 0) return fail_errno(errno, "making the folder " + printable(folder));
  const std::string path = folder + "/" + kScratchMarker;
  const UniqueFd marker(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string text = marker_of(owner);
  if (!marker || ::write(marker.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int number = errno;
    (void)remove_scratch(folder);
    return fail_errno(number, "writing " + printable(path));
  }
  return {};
}

Result<> remove_scratch(const std::string& folder) {
  const std::string doing = "removing the benchmark's folder " + printable(folder);
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened && errno == ENOENT) return {};
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return fail_errno(errno, doing);
  if (status.st_uid != ::geteuid()) return fail(Errc::Refused, doing + ": it is another user's", "");
  for (const char* name : {kScratchSmall, kScratchStaged}) {
    std::error_code error;
    fs::remove_all(held_path(opened) / name, error);  // does not follow links
    if (error) return fail_errno(error.value(), doing);
  }
  // The marker is removed last: it identifies the folder as ours until then.
  for (const std::string& name : scratch_files()) {
    if (::unlinkat(opened.get(), name.c_str(), 0) != 0 && errno != ENOENT) return fail_errno(errno, doing);
  }
  if (::rmdir(folder.c_str()) == 0) return {};
  if (errno == ENOTEMPTY || errno == EEXIST) {
    return fail(Errc::Refused, doing + ": it holds files that are not the benchmark's",
                "look at them and remove it by hand");
  }
  return fail_errno(errno, doing);
}

std::vector<std::string> sweep_leftovers(const std::string& path, std::int64_t now) {
  std::vector<std::string> sentences;
  for (const fs::path& entry : list_folder(path)) {
    const std::string folder = entry.string();
    if (!entry.filename().string().starts_with(kScratchPrefix)) continue;
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (status.st_uid != ::geteuid()) continue;
    if (!is_leftover(folder, status.st_mtime, now)) {
      sentences.push_back(printable(folder) + " belongs to another benchmark and was left alone");
      continue;
    }
    const auto removed = read_owner(folder) ? remove_scratch(folder) : remove_unmarked(folder);
    sentences.push_back(removed ? "removed " + printable(folder) + ", which a killed benchmark had left"
                                : removed.error().message());
  }
  return sentences;
}

}  // namespace spark::bench
