#include "staging/copy/transfer/copy_context.hpp"

#include <fcntl.h>

#include <algorithm>

#include "staging/files/holes.hpp"
#include "staging/files/times.hpp"

namespace spark::staging {

Result<> CopyContext::check_stop() const {
  if (!is_stopped()) return {};
  return fail(Errc::Cancelled, "copying " + source->shown("") + ": interrupted",
              "the copied part is kept for the next attempt");
}

Result<> CopyContext::may_read(std::string_view path, Bytes offset, Bytes bytes) const {
  if (before_read) before_read(std::string(path), offset);
  if (share != nullptr) throttle->yield_to(share->limit(bytes, std::chrono::steady_clock::now()));
  const auto waited = throttle->wait(bytes, [this] { return is_stopped(); });
  if (waited.count() > 0) counters->spent(Activity::Throttle, waited);
  return check_stop();
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
  return S_ISREG(info.stx_mode) && info.stx_size == entry.size &&
         nanoseconds(info.stx_mtime) == entry.mtime_ns &&
         (entry.ctime_ns == 0 || nanoseconds(info.stx_ctime) == entry.ctime_ns) &&
         info.stx_ino == entry.inode;
}

}  // namespace spark::staging
