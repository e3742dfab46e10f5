#include "staging/copy/clone.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/threads.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/parent_dir_cache.hpp"
#include "staging/files/times.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kEntriesAtOnce = 256;  // taken by a thread at a time: neighbours in a folder
constexpr unsigned kCloneThreads = 4;        // a file system creates names in several folders at a time

// None if it does not exist.
std::optional<struct stat> look_at(ParentDirCache& copies, const Entry& entry) {
  const int folder = copies.open(entry.path);
  struct stat info {};
  if (folder < 0 || ::fstatat(folder, copies.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return info;
}

bool is_as_copied(const struct stat& info, const Entry& entry) {
  return S_ISREG(info.st_mode) && static_cast<Bytes>(info.st_size) == entry.size &&
         is_time_kept(nanoseconds(info.st_mtim), entry.mtime_ns) &&
         (info.st_mode & 07777) == kept_mode(entry);
}

// Hard-links the files of a previous copy, or makes copies that share their blocks.
class TakeUnchanged {
 public:
  TakeUnchanged(const CopyContext& context, const Previous& previous, const Entries& entries,
                Resumed& resumed)
      : context_(context),
        previous_(previous.copy),
        entries_(entries),
        resumed_(resumed),
        clones_(can_share_blocks(previous.copy, *context.copy)),
        links_(previous.may_share_files) {}

  Result<> go() {
    const auto ran =
        run_in_threads(std::min<std::size_t>(kCloneThreads, entries_.size() / kEntriesAtOnce + 1),
                       [this](std::size_t) { work(); });
    if (!ran) return fail_with(ran.error(), "reusing unchanged files");
    if (auto go_on = context_.check_stop(); !go_on) return go_on;
    for (const std::size_t index : refused_) resumed_.unchanged[index] = false;
    return {};
  }

 private:
  const CopyContext& context_;
  const Tree& previous_;
  const Entries& entries_;
  Resumed& resumed_;
  bool clones_, links_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::vector<std::size_t> refused_;

  void work() {
    ParentDirCache from(previous_), to(*context_.copy);
    while (!context_.is_stopped()) {
      const std::size_t first = next_.fetch_add(kEntriesAtOnce);
      if (first >= entries_.size()) return;
      for (std::size_t i = first; i < std::min(first + kEntriesAtOnce, entries_.size()); ++i) {
        if (!resumed_.unchanged[i] || resumed_.finished[i]) continue;
        if ((clones_ && clone(from, to, entries_[i])) || (links_ && link(from, to, entries_[i]))) {
          context_.journal->finished(entries_[i]);
          continue;
        }
        const std::scoped_lock lock(mutex_);
        refused_.push_back(i);
      }
    }
  }

  bool clone(ParentDirCache& from, ParentDirCache& to, const Entry& entry) const {
    const int source = from.open(entry.path), copy = to.open(entry.path);
    if (source < 0 || copy < 0) return false;
    constexpr int kSafely = O_NOFOLLOW | O_CLOEXEC;
    const UniqueFd original(::openat(source, from.name().c_str(), O_RDONLY | O_NONBLOCK | kSafely));
    if (!original) return false;
    const UniqueFd made(::openat(copy, to.name().c_str(), O_WRONLY | O_CREAT | O_EXCL | kSafely, 0600));
    if (made && share_blocks(made.get(), original.get()) &&
        put_metadata(made.get(), original.get(), entry,
                     {context_.copy->shown(entry.path), "the earlier copy"}))
      return true;
    if (made) ::unlinkat(copy, to.name().c_str(), 0);
    return false;
  }

  static bool link(ParentDirCache& from, ParentDirCache& to, const Entry& entry) {
    const int source = from.open(entry.path), copy = to.open(entry.path);
    return source >= 0 && copy >= 0 && ::linkat(source, from.name().c_str(), copy, to.name().c_str(), 0) == 0;
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

void find_unchanged(const Previous& previous, const PartialArea& area, Entries& entries, Resumed& resumed) {
  auto manifest = ManifestReader::open(previous.manifest);
  const auto partial = tree_in(area.folder(), "data");
  if (!manifest || !partial) return;  // nothing proves the files there
  const bool shares_blocks = can_share_blocks(previous.copy, *partial);
  if (!shares_blocks && !previous.may_share_files) return;
  ParentDirCache copies(previous.copy), taken(*partial);
  // For a finished file: whether an earlier attempt shared it instead of copying it.
  const auto was_taken = [&](const struct stat& info, const Entry& entry) {
    const auto finished = look_at(taken, entry);
    return finished && (shares_blocks || finished->st_ino == info.st_ino);
  };
  const auto is_same = [&](const Entry& then, std::size_t index) {
    return is_same_source(then, entries[index]) || (index < previous.equal.size() && previous.equal[index]);
  };
  std::size_t at = 0;
  while (const auto then = manifest->next()) {
    while (at < entries.size() && entries[at].path < then->path) ++at;
    if (at == entries.size()) return;
    Entry& now = entries[at];
    if (now.path != then->path || !is_content(now) || resumed.begun.contains(at) || !is_same(*then, at))
      continue;
    const bool is_wanted = now.hash == Digest() || now.hash == then->hash;  // a list of peers has hashes
    if (!is_wanted) continue;
    const auto info = look_at(copies, *then);
    if (!info || !is_as_copied(*info, *then)) continue;
    if (resumed.finished[at] && !was_taken(*info, now)) continue;
    if (resumed.finished[at]) resumed.bytes -= now.size;
    now.hash = then->hash;
    now.lost_attributes = then->lost_attributes;
    now.good_at = std::max(then->good_at != 0 ? then->good_at : previous.made_at, previous.good_at);
    resumed.unchanged[at] = true;
  }
}

Result<> take_unchanged(const CopyContext& context, const std::optional<Previous>& previous,
                        const Entries& entries, Resumed& resumed) {
  if (previous) return TakeUnchanged(context, *previous, entries, resumed).go();
  resumed.unchanged.assign(entries.size(), false);
  return {};
}

}  // namespace spark::staging
