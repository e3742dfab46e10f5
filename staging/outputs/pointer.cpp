#include "staging/outputs/pointer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 4096;

bool is_file(const Completeness& completeness) {
  return completeness.rule == Completeness::Rule::DeepSpeed;
}

// Others may have given the name to any file, where they may rename.
Result<> check_pointer(const fs::path& path, Errc kind) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || S_ISLNK(info.st_mode) ||
      (S_ISREG(info.st_mode) && static_cast<std::size_t>(info.st_size) <= kLongestName))
    return {};
  return fail(kind, shown_path(path) + " is no pointer to a checkpoint", "rename or delete it");
}

// A worker that is killed leaves a file under a name of ours, which the next call replaces.
Result<> replace(const fs::path& path, const std::function<int(const fs::path&)>& make) {
  const fs::path fresh = path.parent_path() / ("." + path.filename().native() + ".spark-new");
  if (auto checked = check_pointer(fresh, Errc::Failed); !checked) return checked;
  if (auto checked = check_pointer(path, Errc::Refused); !checked) return checked;  // perhaps the job's own
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "removing " + shown_path(fresh));
  if (make(fresh) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0)
    return fail_errno(errno, "replacing " + shown_path(path));
  return flush_folder(path.parent_path());
}

Result<> write(const fs::path& path, const std::string& text) {
  return replace(path, [&](const fs::path& fresh) {
    const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const auto size = static_cast<ssize_t>(text.size());
    if (!file || ::fchmod(file.get(), 0644) != 0) return -1;  // whatever the umask is
    return ::write(file.get(), text.data(), text.size()) == size ? ::fsync(file.get()) : -1;
  });
}

}  // namespace

std::string pointer_in(const fs::path& folder, const Completeness& rule) {
  const auto text_of = [&](const char* name) {
    const auto text = read_regular_file(folder / name, kLongestName);
    return text ? std::string(trim(*text)) : "";
  };
  std::error_code error;
  const std::string name =
      is_file(rule) ? text_of(kLatest) : fs::read_symlink(folder / kLatest, error).native();
  const auto iteration = megatron_iteration(name);
  return iteration && text_of(kMegatronTracker) != std::to_string(*iteration) ? "" : name;
}

Result<> point_at_highest(const fs::path& folder, const Completeness& rule) {
  NotListed not_listed;
  const auto copies = published_checkpoints(folder, rule, &not_listed);
  if (!copies) return copies.take_error();
  if (copies->empty()) return {};
  const std::string& name = copies->front().name;
  const bool may_be_other = std::ranges::any_of(
      not_listed.unreadable, [&](const UnreadableCopy& one) { return may_be_above(one.name, name); });
  if (may_be_other) return {};
  if (const auto iteration = megatron_iteration(name)) {
    if (auto written = write(folder / kMegatronTracker, std::to_string(*iteration)); !written) return written;
  }
  const fs::path latest = folder / kLatest;
  struct stat info {};
  const bool is_there = ::lstat(latest.c_str(), &info) == 0;
  if (is_there && !(is_file(rule) ? S_ISREG(info.st_mode) : S_ISLNK(info.st_mode))) {
    return fail(Errc::Refused, shown_path(latest) + " is the job's own",
                "`spark-stage latest` prints the newest complete checkpoint");
  }
  if (pointer_in(folder, rule) == name) return {};
  if (is_file(rule)) return write(latest, name);
  return replace(latest, [&](const fs::path& fresh) { return ::symlink(name.c_str(), fresh.c_str()); });
}

}  // namespace spark::staging
