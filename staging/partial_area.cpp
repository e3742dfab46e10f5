#include "staging/partial_area.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "staging/metadata.hpp"
#include "staging/tree.hpp"

namespace spark::staging {
namespace {

bool is_same_object(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

// Unavailable when another process has it, or just took it away.
Result<PartialArea> PartialArea::acquire(const std::filesystem::path& folder) {
  const std::string shown = printable(folder.native());
  const bool is_new = ::mkdir(folder.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return fail_errno(errno, "making folder " + shown);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno != ENOENT) return fail_errno(errno, "opening folder " + shown);
  struct stat opened {
  }, named{};
  if (!fd || ::fstat(fd.get(), &opened) != 0)
    return fail(Errc::Unavailable, "opening folder " + shown + ": it went away");
  if (opened.st_uid != ::geteuid()) {
    return fail(Errc::Refused, "using " + shown + " for the partial copy: it belongs to another user",
                "look at it, and delete it if nothing needs it");
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "locking folder " + shown);
    return fail(Errc::Unavailable, "locking folder " + shown + ": another process is copying there");
  }
  // Whoever had the lock before may have deleted the folder that this descriptor stands for.
  if (::lstat(folder.c_str(), &named) != 0 || !is_same_object(opened, named)) {
    return fail(Errc::Unavailable, "locking folder " + shown + ": it went away");
  }
  if (is_new) drop_inherited_acl(fd.get());
  if (::fchmod(fd.get(), 0700) != 0) return fail_errno(errno, "closing folder " + shown + " to others");
  return PartialArea(folder, std::move(fd));
}

Result<PartialArea> PartialArea::open(const std::filesystem::path& folder, const StopFlag& stop) {
  for (;;) {
    auto area = acquire(folder);
    if (area || area.error().kind != Errc::Unavailable) return area;
    if (stop) return fail(Errc::Cancelled, area.error().what + "; waiting for it was interrupted");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Result<PartialArea> PartialArea::try_open(const std::filesystem::path& folder) {
  return acquire(folder);
}

PartialArea::~PartialArea() {
  if (lock_) ::rmdir(folder_.c_str());
}

Result<> PartialArea::clear() {
  for (const char* name : {"manifest", "manifest.new", "journal", "journal.new", "data"}) {
    if (auto removed = remove_tree(folder_, name); !removed) return removed;
  }
  return {};
}

}  // namespace spark::staging
