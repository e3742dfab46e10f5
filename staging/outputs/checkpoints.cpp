#include "staging/outputs/checkpoints.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/removed.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

bool is_temporary(const std::string& name) {
  constexpr std::array<std::string_view, 4> kBegins = {".", "tmp-", "tmp_", "tmp."};
  constexpr std::array<std::string_view, 3> kEnds = {".tmp", ".incomplete", ".partial"};
  return std::ranges::any_of(kBegins, [&](auto begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

bool is_pointer(const std::string& name) {
  return name == kLatest || name == "latest_checkpointed_iteration.txt";
}

// Without links, so that different names of one place are equal; as it is if it can't be resolved.
std::string resolved(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  const std::string text = (error ? path : real).lexically_normal().native();
  return text.size() > 1 && text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
}

bool is_in_use(const fs::path& path, const std::vector<fs::path>& sources) {
  const std::string own = resolved(path);
  return std::ranges::any_of(sources, [&](const fs::path& source) {
    const std::string other = resolved(source);
    return is_inside(own, other) || is_inside(other, own);
  });
}

bool is_unchanged(const fs::path& path, std::int64_t changed_ns) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && totals_of(path).changed_ns == changed_ns;
}

// Deletes the entries that were renamed for it.
Result<> delete_removed(const fs::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kRemoved)) continue;
    if (auto removed = remove_tree(folder, name); !removed) return removed;
  }
  return {};
}

}  // namespace

Result<std::vector<Checkpoint>> list_checkpoints(const fs::path& folder, const Completeness& completeness,
                                                 WallTime now, Duration settled) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  const std::int64_t settled_before = std::chrono::nanoseconds((now - settled).time_since_epoch()).count();
  std::vector<Checkpoint> checkpoints;
  for (const std::string& name : *names) {
    struct stat info {};
    if (is_temporary(name) || is_pointer(name) || ::lstat((folder / name).c_str(), &info) != 0 ||
        (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)))
      continue;
    const TreeTotals totals = totals_of(folder / name);
    Checkpoint checkpoint{name, nanoseconds(info.st_mtim), totals.changed_ns, totals.bytes, ""};
    checkpoint.incomplete = why_incomplete(folder / name, checkpoint.changed_ns, completeness);
    checkpoint.is_settling = checkpoint.incomplete.empty() && checkpoint.changed_ns > settled_before;
    if (checkpoint.is_settling) checkpoint.incomplete = "it changed a moment ago";
    checkpoints.push_back(std::move(checkpoint));
  }
  std::ranges::sort(checkpoints, [](const Checkpoint& a, const Checkpoint& b) {
    return a.mtime_ns != b.mtime_ns ? a.mtime_ns > b.mtime_ns : a.name > b.name;
  });
  return checkpoints;
}

bool mark_unproven(std::vector<Checkpoint>& checkpoints, const fs::path& folder,
                   const std::map<std::string, std::int64_t>& known, std::optional<std::int64_t> boot_ns) {
  bool are_new = false;
  for (Checkpoint& one : checkpoints) {
    const auto found = known.find(one.name);
    const bool is_known = found != known.end() && found->second == one.changed_ns;
    if (!one.incomplete.empty() || is_known) continue;
    one.is_unproven = boot_ns && one.changed_ns < *boot_ns;
    are_new = are_new || !one.is_unproven;
    if (!one.is_unproven) continue;
    one.incomplete =
        "it is older than this host's last start, and was not known to be on its drive by then; send it with "
        "`spark-stage stage-out " +
        printable((folder / one.name).native()) + " VOLUME:PATH` if it is right";
  }
  return are_new;
}

Result<> flush_file_system(const fs::path& path) {
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (opened && ::syncfs(opened.get()) == 0) return {};
  return fail_errno(errno, "flushing the file system of " + printable(path.native()));
}

Result<> remove_checkpoints(const fs::path& folder, const std::map<std::string, std::int64_t>& seen,
                            const std::vector<fs::path>& sources) {
  // First, since a checkpoint of the same name may be renamed to the name of the remains.
  if (auto cleared = delete_removed(folder); !cleared) return cleared;
  for (const auto& [name, changed_ns] : seen) {
    if (is_temporary(name) || name.empty() || name.find('/') != std::string::npos ||
        !is_unchanged(folder / name, changed_ns) || is_in_use(folder / name, sources))
      continue;
    const fs::path away = folder / ("." + name + kRemoved);
    auto renamed = rename_to_new(folder / name, away);
    if (!renamed && renamed.error().kind != Errc::NotFound) return renamed;
  }
  return delete_removed(folder);
}

Result<> point_latest(const fs::path& folder, const std::string& name, PointerKind kind) {
  const fs::path latest = folder / kLatest;
  struct stat info {};
  const bool is_there = ::lstat(latest.c_str(), &info) == 0;
  const bool is_right_kind = kind == PointerKind::Link ? S_ISLNK(info.st_mode) : S_ISREG(info.st_mode);
  if (is_there && !is_right_kind) {
    return fail(Errc::Refused, printable(latest.native()) + " is the job's own",
                "`spark-stage latest` prints the newest complete checkpoint");
  }
  if (kind == PointerKind::File) return write_file_atomically(latest, name);
  std::error_code error;
  if (is_there && fs::read_symlink(latest, error) == name) return {};
  const fs::path fresh = folder / ".latest.spark-new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "removing " + printable(fresh.native()));
  if (::symlink(name.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), latest.c_str()) != 0)
    return fail_errno(errno, "making the link " + printable(latest.native()));
  return flush_folder(folder);
}

}  // namespace spark::staging
