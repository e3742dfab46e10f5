#include "staging/clone.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "staging/manifest_reader.hpp"
#include "staging/metadata.hpp"
#include "staging/times.hpp"

namespace spark::staging {
namespace {

bool is_as_copied(const Tree& copy, const Entry& entry) {
  const Parent parent = open_parent(copy, entry.path);
  struct stat info {};
  if (!parent.folder || ::fstatat(parent.folder.get(), parent.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  return S_ISREG(info.st_mode) && static_cast<Bytes>(info.st_size) == entry.size &&
         nanoseconds(info.st_mtim) == entry.mtime_ns && (info.st_mode & 07777) == kept_mode(entry);
}

bool clone(const Tree& previous, const Tree& copy, const Entry& entry) {
  const UniqueFd from = open_beneath(previous, entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const Parent to = open_parent(copy, entry.path);
  if (!from || !to.folder) return false;
  const UniqueFd made(
      ::openat(to.folder.get(), to.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made && share_blocks(made.get(), from.get()) &&
      put_metadata(made.get(), from.get(), entry, copy.shown(entry.path)))
    return true;
  if (made) ::unlinkat(to.folder.get(), to.name.c_str(), 0);
  return false;
}

bool link(const Tree& previous, const Tree& copy, const Entry& entry) {
  const Parent from = open_parent(previous, entry.path), to = open_parent(copy, entry.path);
  return from.folder && to.folder &&
         ::linkat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), 0) == 0;
}

}  // namespace

bool share_blocks(int copy, int source) {
  return ::ioctl(copy, FICLONE, source) == 0;
}

bool can_share_blocks(const Tree& source, const Tree& copy) {
  struct stat one {
  }, other{};
  if (::fstat(source.folder.get(), &one) != 0 || ::fstat(copy.folder.get(), &other) != 0) return false;
  if (one.st_dev != other.st_dev) return false;
  const auto make = [&] {
    return UniqueFd(::openat(copy.folder.get(), ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  };
  const UniqueFd from = make(), to = make();
  return from && to && ::ftruncate(from.get(), 4096) == 0 && share_blocks(to.get(), from.get());
}

void find_unchanged(const Previous& previous, Entries& entries, Resumed& resumed) {
  auto manifest = ManifestReader::open(previous.manifest);
  if (!manifest) return;  // nothing vouches for what is there
  std::size_t at = 0;
  while (const auto then = manifest->next()) {
    while (at < entries.size() && entries[at].path < then->path) ++at;
    if (at == entries.size()) return;
    Entry& now = entries[at];
    if (!is_content(now) || resumed.has(at) || !is_same_source(*then, now)) continue;
    if (!is_as_copied(previous.copy, *then)) continue;
    now.hash = then->hash;
    resumed.unchanged[at] = true;
  }
}

Result<> take_unchanged(const CopyContext& context, const std::optional<Previous>& previous,
                        const Entries& entries, Resumed& resumed) {
  if (!previous) resumed.unchanged.assign(entries.size(), false);
  const bool clones = previous && can_share_blocks(previous->copy, *context.copy);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!resumed.unchanged[i]) continue;
    if (auto go_on = context.check_stop(); !go_on) return go_on;
    const bool is_taken = (clones && clone(previous->copy, *context.copy, entries[i])) ||
                          link(previous->copy, *context.copy, entries[i]);
    if (is_taken) {
      context.journal->finished(entries[i]);
    } else {
      resumed.unchanged[i] = false;
    }
  }
  return {};
}

}  // namespace spark::staging
