#include "staging/outputs/held_source.hpp"

#include <fcntl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/own_rest.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

// Bytes that this user may still write there.
Bytes room_in(const fs::path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return 0;
  const Bytes free = Bytes{space.f_bavail} * space.f_frsize;
  struct dqblk quota {};
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int kGet = static_cast<int>(QCMD(Q_GETQUOTA, USRQUOTA));
  const bool has_quota = opened && ::syscall(SYS_quotactl_fd, opened.get(), kGet, ::geteuid(), &quota) == 0 &&
                         (quota.dqb_valid & QIF_BLIMITS) != 0;
  const Bytes limit = quota.dqb_bsoftlimit != 0 ? quota.dqb_bsoftlimit : quota.dqb_bhardlimit;
  if (!has_quota || limit == 0) return free;
  const Bytes most = limit * QIF_DQBLKSIZE;
  return std::min<Bytes>(free, most - std::min<Bytes>(most, quota.dqb_curspace));
}

// Its mark has its name: the folder of another output is not taken for it.
Result<OwnRest> open_held(const fs::path& folder) {
  return OwnRest::open(folder, folder.filename());
}

Result<OwnRest> make_folder(const fs::path& folder, const fs::path& job_folder) {
  auto made = OwnRest::make(folder, folder.filename());
  if (!made && made.error().kind == Errc::Denied)
    return fail(Errc::Denied, made.error().what,
                "create it, and make the owner of " + printable(job_folder.native()) + " its owner");
  if (!made) return made;
  struct stat its {
  }, jobs{};
  if (::fstat(made->opened().get(), &its) != 0 || ::stat(job_folder.c_str(), &jobs) != 0)
    return fail_errno(errno, "looking at " + printable(folder.native()));
  if (its.st_dev == jobs.st_dev) return made;
  return fail(Errc::Unsupported, printable(job_folder.native()) + " is a file system of its own");
}

tl::unexpected<Error> no_link(const fs::path& to) {
  const bool has_none = errno == EPERM || errno == EOPNOTSUPP || errno == EXDEV || errno == EMLINK;
  const Error error = fail_errno(errno, "linking " + printable(to.native())).value();
  return has_none ? fail(Errc::Unsupported, error.what) : fail(error);
}

Result<> link_one(const fs::path& from, const fs::path& to) {
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0) return fail_errno(errno, "looking at " + printable(from.native()));
  std::error_code error;
  int made = 0;
  if (S_ISDIR(info.st_mode)) {
    made = ::mkdir(to.c_str(), 0700);
  } else if (S_ISLNK(info.st_mode)) {
    made = ::symlink(fs::read_symlink(from, error).c_str(), to.c_str());
  } else {
    made = ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0);
  }
  return made == 0 ? Result<>() : no_link(to);
}

// After everything in it was made.
Result<> finish_folder(const fs::path& from, const fs::path& to) {
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0) return fail_errno(errno, "looking at " + printable(from.native()));
  const struct timespec times[2] = {info.st_atim, info.st_mtim};
  if (S_ISREG(info.st_mode)) return {};
  const bool is_link = S_ISLNK(info.st_mode);
  if ((!is_link && ::chmod(to.c_str(), info.st_mode & 07777) != 0) ||
      ::utimensat(AT_FDCWD, to.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(errno, "setting the times of " + printable(to.native()));
  return {};
}

Result<> link_tree(const fs::path& from, const fs::path& to) {
  if (auto linked = link_one(from, to); !linked) return linked;
  std::vector<fs::path> names{""};
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(from, error))) {
    for (fs::recursive_directory_iterator entries(from, error), end; !error && entries != end;
         entries.increment(error)) {
      names.push_back(entries->path().lexically_relative(from));
      if (auto linked = link_one(entries->path(), to / names.back()); !linked) return linked;
    }
  }
  if (error) return fail_errno(error.value(), "reading " + printable(from.native()));
  std::ranges::reverse(names);  // a folder after its entries
  for (const fs::path& name : names) {
    auto finished = name.empty() ? finish_folder(from, to) : finish_folder(from / name, to / name);
    if (!finished) return finished;
  }
  return {};
}

}  // namespace

fs::path holding_folder(const fs::path& job_folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(job_folder, error);  // it may be gone
  return real.parent_path() / ("." + real.filename().native() + kHeldSuffix);
}

Result<fs::path> hold_checkpoint(const fs::path& job_folder, const std::string& name, std::int64_t written) {
  const fs::path source = job_folder / name, folder = holding_folder(job_folder), held = folder / name;
  const TreeTotals before = totals_of(source);
  const auto changed = [&] {
    return fail(Errc::Mismatch, printable(source.native()) + " changed, or was deleted, before it was held");
  };
  if (before.written != written) return changed();
  const auto there = open_held(folder);
  if (there && totals_of(there->folder() / name).written == written) return held;  // for a request that waits
  if (room_in(job_folder) < before.bytes) {
    return fail(Errc::NoSpace,
                "there is no room for one more checkpoint of " + format_bytes(before.bytes) + " beside " +
                    printable(job_folder.native()),
                "make room on the drive, or in the user's quota");
  }
  auto opened = make_folder(folder, job_folder);
  if (!opened) return opened.take_error();
  const fs::path unfinished = opened->folder() / ("." + name + ".new");
  for (const std::string& old : {unfinished.filename().native(), name}) {
    if (auto removed = remove_tree(opened->folder(), old); !removed) return removed.take_error();
  }
  auto linked = link_tree(source, unfinished);
  if (linked) {
    const TreeTotals after = totals_of(source), links = totals_of(unfinished);
    const bool is_whole = after.written == written && after.entries == before.entries &&
                          links.written == written && links.entries == before.entries;
    if (!is_whole) linked = changed();
  }
  if (linked && ::rename(unfinished.c_str(), (opened->folder() / name).c_str()) != 0)
    linked = fail_errno(errno, "renaming " + shown_path(unfinished));
  if (linked) return held;
  (void)remove_tree(opened->folder(), unfinished.filename());
  (void)opened->remove_if_empty();
  return linked.take_error();
}

Result<> release_checkpoints(const fs::path& folder, const std::vector<std::string>& keep) {
  auto rest = open_held(folder);
  const bool holds_none =
      !rest && (rest.error().kind == Errc::NotFound || rest.error().kind == Errc::Refused);
  if (holds_none) return {};
  if (!rest) return rest.take_error();
  const auto names = rest->names();
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    if (std::ranges::find(keep, name) != keep.end()) continue;
    if (auto removed = remove_tree(rest->folder(), name); !removed && all) all = std::move(removed);
  }
  (void)rest->remove_if_empty();
  return all;
}

std::size_t held_in(const fs::path& folder) {
  const auto rest = open_held(folder);
  const auto names = rest ? rest->names() : std::vector<std::string>();
  return names ? names->size() : 0;
}

}  // namespace spark::staging
