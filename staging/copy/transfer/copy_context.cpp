#include "staging/copy/transfer/copy_context.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/holes.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/times.hpp"
#include "staging/manifest/source_identity.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

bool CopyContext::is_stopped() const {
  return *stop || end->has_failed() || (viewer != nullptr && !viewer->check());
}

Result<> CopyContext::check_stop() const {
  if (viewer != nullptr)
    if (auto same = viewer->check(); !same) return same;
  if (!is_stopped()) return {};
  return fail(Errc::Cancelled, "copying " + source->shown("") + ": interrupted",
              "the copied part is kept for the next attempt");
}

Result<> CopyContext::may_read(std::string_view path, Bytes offset, Bytes bytes,
                               const std::function<bool()>& is_urgent) const {
  if (before_read) before_read(std::string(path), offset);
  while (bytes > 0 && !is_stopped()) {
    const bool is_first = is_urgent && is_urgent();
    // What readers wait for may come behind what others have booked: that is little each.
    const Bytes booked = viewer != nullptr && !is_first ? std::min(bytes, kViewUnit) : bytes;
    if (share != nullptr) throttle->yield_to(share->limit(booked, std::chrono::steady_clock::now()));
    const auto waited = throttle->wait(
        booked, [this] { return is_stopped(); }, is_first);
    if (waited.count() > 0) counters->spent(Activity::Throttle, waited);
    bytes -= booked;
  }
  return check_stop();
}

void settle(std::int64_t ctime_ns, SteadyTime seen_at, const std::function<bool()>& is_stopped) {
  constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(20);
  const SystemClock clock;
  while (!is_stopped()) {
    const auto left = unsettled_for(ctime_ns, clock.steady() - seen_at);
    if (left.count() <= 0) return;
    std::this_thread::sleep_for(std::min(left, kStep));
  }
}

void CopyContext::settle(const Entry& entry) const {
  staging::settle(entry.ctime_ns, walked_at, [this] { return is_stopped(); });
}

void update(Entry& entry, int file, const struct stat& info, const Tree& tree) {
  entry.size = static_cast<Bytes>(info.st_size);
  const bool takes_all = static_cast<Bytes>(info.st_blocks) * 512 >= entry.size;
  entry.allocated = takes_all ? entry.size : bytes_of_data(file, entry.size);
  entry.mtime_ns = nanoseconds(info.st_mtim);
  entry.ctime_ns = tree.has_ctime ? nanoseconds(info.st_ctim) : 0;
  entry.inode = info.st_ino;
  entry.mode = info.st_mode & tree.file_mode_mask;
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
}

std::optional<bool> is_unchanged(const Entry& entry, int fd) {
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &info) != 0) return {};
  SourceIdentity now{info.stx_size, nanoseconds(info.stx_mtime), nanoseconds(info.stx_ctime), info.stx_ino};
  if (entry.ctime_ns == 0) now.ctime_ns = 0;  // see Tree::has_ctime
  return S_ISREG(info.stx_mode) && now == identity_of(entry);
}

Result<> check_empty(const Entry& entry, int fd, const Tree& tree) {
  if (entry.size != 0) return {};
  const IoBuffer buffer(kLargestAlignment);
  const ssize_t got = ::pread(fd, buffer.data(), kLargestAlignment, 0);
  if (got == 0) return {};
  if (got < 0) return tree.failed(errno, "reading", entry.path);
  return fail(
      Errc::Unsupported,
      "copying " + tree.shown(entry.path) + ": its file system says that it is empty, and it has data",
      "exclude it; files of /proc and of some FUSE file systems have no size");
}

}  // namespace spark::staging
