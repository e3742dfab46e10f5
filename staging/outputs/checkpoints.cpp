#include "staging/outputs/checkpoints.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

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

// A job may be loading it.
Result<bool> is_open(const fs::path& path) {
  const auto found = look_before_deleting(std::vector{path}, kNeverStopped);
  return found ? Result<bool>(found->passes) : found.take_error();
}

bool is_unchanged(const fs::path& path, std::int64_t seen) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && totals_of(path).written == seen;
}

bool is_in(const KnownStates& states, const Checkpoint& one) {
  const auto found = states.find(one.name);
  return found != states.end() && (found->second == one.written || found->second == one.changed_ns);
}

// 0: the file system has no such time.
std::int64_t birth_of(const fs::path& path) {
  struct statx info {};
  const bool is_seen = ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &info) == 0;
  return is_seen && (info.stx_mask & STATX_BTIME) != 0 ? nanoseconds(info.stx_btime) : 0;
}

void add_files(Checkpoint& one, const fs::path& path) {
  constexpr std::size_t kMostHashes = 4096;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return;
  fs::recursive_directory_iterator all(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && all != fs::recursive_directory_iterator(); all.increment(error)) {
    const bool is_folder = all->symlink_status(error).type() == fs::file_type::directory;
    if (!is_lasting(all->path().filename().native())) {
      if (is_folder) all.disable_recursion_pending();
      continue;
    }
    if (is_folder || ++one.file_count > kMostHashes) continue;
    const std::string below = all->path().native().substr(path.native().size());
    one.files.push_back(static_cast<std::int64_t>(digest_of(below).low));
  }
  if (one.file_count > kMostHashes) one.files.clear();
  std::ranges::sort(one.files);
}

// `future_ns`: later times are in the future.
Checkpoint checkpoint_at(const fs::path& path, const struct stat& info, const Completeness& completeness,
                         const KnownStates& known, std::int64_t future_ns) {
  const TreeTotals totals = totals_of(path);
  Checkpoint one{.name = path.filename(),
                 .mtime_ns = nanoseconds(info.st_mtim),
                 .changed_ns = totals.changed_ns,
                 .modified_ns = totals.modified_ns,
                 .written = totals.written,
                 .bytes = totals.bytes,
                 .inode = info.st_ino,
                 .birth_ns = birth_of(path),
                 .is_in_future = totals.changed_ns > future_ns};
  const auto proved = proved_at(path, completeness);
  if (!proofs_in(completeness).empty()) one.proof_ns = proved.value_or(0);
  const std::string mark = unfinished_mark(one.name);
  if (!totals.unreadable.empty()) {
    one.is_unproven = true;
    one.incomplete = printable(totals.unreadable) + " can't be read by the owner of the folder";
  } else if (!totals.broken_link.empty()) {
    one.is_unproven = true;  // the job may be able to load it
    one.incomplete = "the link " + printable(totals.broken_link) +
                     " leads to nothing, or out of it: the copy would lack that file";
  } else if (::access((path.parent_path() / mark).c_str(), F_OK) == 0) {
    one.incomplete = "the file " + printable(mark) + " is beside it";
  } else {
    Incomplete incomplete = why_incomplete(path, is_in(known, one), completeness);
    one.incomplete = std::move(incomplete.why);
    one.is_unproven = incomplete.is_by_times;
    const bool was_set_back = totals.is_from_earlier || (proved > future_ns && totals.oldest_ns <= future_ns);
    one.stays_unproven = one.incomplete.empty() && proved && was_set_back;
    if (one.incomplete.empty()) add_files(one, path);
  }
  return one;
}

}  // namespace

Result<std::vector<Checkpoint>> list_checkpoints(const fs::path& folder, const Completeness& completeness,
                                                 WallTime now, Duration settled, const KnownStates& unchanged,
                                                 const KnownStates& known) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  const auto in_ns = [](WallTime time) { return std::chrono::nanoseconds(time.time_since_epoch()).count(); };
  const std::int64_t future_ns = in_ns(now + settled);
  std::vector<Checkpoint> checkpoints, aliases;
  for (const std::string& name : *names) {
    struct stat info {};
    if (::lstat((folder / name).c_str(), &info) != 0 || (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)))
      continue;
    const EntryKind kind = kind_of(name, S_ISDIR(info.st_mode), completeness.rule);
    if (kind == EntryKind::Temporary || kind == EntryKind::Other) continue;
    const bool is_proved = !proofs_in(completeness).empty() && proved_at(folder / name, completeness);
    if (kind == EntryKind::Unlikely && !is_proved) continue;
    Checkpoint one = checkpoint_at(folder / name, info, completeness, known, future_ns);
    one.is_settling = one.incomplete.empty() && one.changed_ns > in_ns(now - settled) &&
                      !is_in(unchanged, one) && !is_in(known, one);
    if (one.is_settling) one.incomplete = "it changed a moment ago";
    (kind == EntryKind::Alias ? aliases : checkpoints).push_back(std::move(one));
  }
  add_aliases(checkpoints, aliases,
              [](const Checkpoint& one) { return one.incomplete.empty() || one.is_settling; });
  return checkpoints;
}

std::string misnamed_folder(const fs::path& folder, Completeness::Rule rule) {
  const auto names = names_of(folder);
  if (!names) return "";
  const auto found = std::ranges::find_if(*names, [&](const std::string& name) {
    std::error_code error;
    return step_of(name) && kind_of(name, true, rule) == EntryKind::Other &&
           kind_of(name, true, Completeness::Rule::Rename) == EntryKind::Checkpoint &&
           fs::is_directory(fs::symlink_status(folder / name, error));
  });
  return found == names->end() ? "" : *found;
}

bool mark_unproven(std::vector<Checkpoint>& checkpoints, const fs::path& folder, const KnownStates& known,
                   std::optional<std::int64_t> boot_ns, const KnownStates& unproven) {
  bool are_new = false;
  for (Checkpoint& one : checkpoints) {
    const bool is_complete = one.incomplete.empty();
    if ((!is_complete && !one.is_settling) || is_in(known, one)) continue;
    // By the proof, not by the newest file: an interrupted save of the same step may have overwritten one
    // file.
    const std::int64_t proved_ns = one.proof_ns != 0 ? one.proof_ns : one.changed_ns;
    const bool is_before = boot_ns && std::min(one.changed_ns, proved_ns) < *boot_ns;
    one.stays_unproven = one.stays_unproven || is_before || is_in(unproven, one);
    are_new = are_new || (is_complete && !one.stays_unproven);
    if (!one.stays_unproven) continue;
    one.is_unproven = true;
    one.is_settling = false;
    one.incomplete =
        std::string(is_before ? "it is" : "a clock was set: it may be the rest of an interrupted save, or") +
        " older than this host's last start, and was not known to be on its drive by then; send it with "
        "`spark-stage stage-out " +
        printable((folder / one.name).native()) + " VOLUME:PATH` if it is right";
  }
  return are_new;
}

Result<> remove_checkpoints(const fs::path& folder, const KnownStates& seen,
                            const std::vector<fs::path>& sources,
                            const std::function<void(const std::string&)>& on_removal) {
  // First, since a checkpoint of the same name may be renamed to the name of the remains.
  Result<> all = finish_removals(folder);
  for (const auto& [name, written] : seen) {
    const auto checked = identity_of(folder / name);
    if (!checked || name.empty() || name.starts_with('.') || name.find('/') != std::string::npos ||
        !is_unchanged(folder / name, written) || is_in_use(folder / name, sources))
      continue;
    const auto open = is_open(folder / name);
    if (open && *open) continue;
    auto done = check_deletable(folder / name);
    if (done && !open) done = open.take_error();
    if (done) {
      on_removal(name);
      auto away = rename_for_removal(folder, name, *checked);
      done = away ? remove(std::move(*away)) : Result<>(fail(away.error()));
    }
    if (!done && done.error().kind != Errc::NotFound && all) all = std::move(done);
  }
  return all;
}

}  // namespace spark::staging
