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

class TakeUnchanged {
 public:
  TakeUnchanged(const CopyContext& context, const Previous& previous, std::vector<Entry>& entries,
                Resumed& resumed)
      : context_(context), previous_(previous), entries_(entries), resumed_(resumed) {}

  Result<> go() {
    auto manifest = ManifestReader::open(previous_.manifest);
    if (!manifest) return {};  // nothing to vouch for what is there
    std::size_t at = 0;
    while (auto then = manifest->next()) {
      if (auto go_on = context_.check_stop(); !go_on) return go_on;
      while (at < entries_.size() && entries_[at].path < then->path) ++at;
      if (at == entries_.size()) break;
      Entry& now = entries_[at];
      if (now.path != then->path || !is_content(now) || resumed_.has(at) || !is_same_source(*then, now))
        continue;
      if (!is_as_copied(*then) || !take(*then)) continue;
      now.hash = then->hash;
      resumed_.finished[at] = true;
      context_.journal->finished(now);
      context_.counters->bytes_total -= now.size;
      --context_.counters->files_total;
    }
    return {};
  }

 private:
  const CopyContext& context_;
  const Previous& previous_;
  std::vector<Entry>& entries_;
  Resumed& resumed_;
  bool clones_ = true;  // until the file system says that it can't

  bool is_as_copied(const Entry& entry) const {
    const Parent parent = open_parent(previous_.copy, entry.path);
    struct stat info {};
    if (!parent.folder ||
        ::fstatat(parent.folder.get(), parent.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return false;
    return S_ISREG(info.st_mode) && static_cast<Bytes>(info.st_size) == entry.size &&
           nanoseconds(info.st_mtim) == entry.mtime_ns && (info.st_mode & 07777) == kept_mode(entry);
  }

  bool take(const Entry& entry) {
    if (clones_) {
      if (clone(entry)) return true;
      clones_ = false;
    }
    return link(entry);
  }

  bool clone(const Entry& entry) {
    const UniqueFd from = open_beneath(previous_.copy, entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const Parent to = open_parent(*context_.copy, entry.path);
    if (!from || !to.folder) return false;
    const UniqueFd copy(
        ::openat(to.folder.get(), to.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (copy && share_blocks(copy.get(), from.get()) &&
        put_metadata(copy.get(), from.get(), entry, context_.copy->shown(entry.path)))
      return true;
    if (copy) ::unlinkat(to.folder.get(), to.name.c_str(), 0);
    return false;
  }

  bool link(const Entry& entry) {
    const Parent from = open_parent(previous_.copy, entry.path), to = open_parent(*context_.copy, entry.path);
    return from.folder && to.folder &&
           ::linkat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), 0) == 0;
  }
};

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

Result<> take_unchanged(const CopyContext& context, const Previous& previous, std::vector<Entry>& entries,
                        Resumed& resumed) {
  return TakeUnchanged(context, previous, entries, resumed).go();
}

}  // namespace spark::staging
