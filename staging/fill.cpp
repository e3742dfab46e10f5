#include "staging/fill.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "base/text.hpp"
#include "staging/journal.hpp"
#include "staging/metadata.hpp"
#include "staging/prune.hpp"
#include "staging/times.hpp"

namespace spark::staging {
namespace {

// Where syncfs is known to make every file and folder durable, and to tell of errors.
bool syncs_as_a_whole(int fd) {
  constexpr std::array<std::uint32_t, 5> kKnown = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                   F2FS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 &&
         std::ranges::find(kKnown, static_cast<std::uint32_t>(info.f_type)) != kKnown.end();
}

bool is_content(const Entry& entry) {
  return entry.type == EntryType::File && entry.link_to.empty();
}

// What an earlier attempt finished: all of it if it got as far as a manifest, else what its journal has.
std::vector<Entry> vouched_for(const PartialArea& area) {
  const auto data = identity_of(area.data());
  auto manifest = read_manifest(area.manifest());
  if (data && manifest && manifest->root == *data) return std::move(manifest->entries);
  return read_journal(area.journal());
}

// Entries that share a fate, for one warning about all of them.
struct Count {
  std::uint64_t number = 0;
  std::string first;
  void add(const Entry& entry) {
    if (number++ == 0) first = entry.path.empty() ? "the root" : printable(entry.path);
  }
  std::string text() const {
    return number == 1 ? first : first + " and " + std::to_string(number - 1) + " more";
  }
};

class Fill {
 public:
  Fill(FillJob job, Monitor& monitor)
      : job_(std::move(job)), entries_(job_.walked.entries), monitor_(monitor) {}

  Result<Filled> go() {
    Result<> done = monitor_.during(CopyPhase::Copying, [this] { return copy_all(); });
    if (!done) return tl::unexpected<Error>(std::move(done.error()));
    done = monitor_.during(CopyPhase::Flushing, [this] { return flush(); });
    if (!done) return tl::unexpected<Error>(std::move(done.error()));
    filled_.manifest.entries = std::move(entries_);
    add_warnings();
    return std::move(filled_);
  }

 private:
  FillJob job_;
  std::vector<Entry>& entries_;
  Monitor& monitor_;
  Tree copy_;
  Filled filled_;
  std::vector<Entry*> to_copy_;
  std::atomic<bool> failed_{false};
  bool flush_each_ = false;
  std::mutex lost_mutex_;
  Count lost_attributes_, changed_folders_;

  Result<> copy_all() {
    auto tree = tree_in(job_.area->folder(), "data");
    if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
    copy_ = std::move(*tree);
    flush_each_ = !syncs_as_a_whole(copy_.folder.get());
    const std::vector<Entry> kept = finished_before(*job_.area, entries_);
    take_over(kept);
    // Nothing may stay that the journal does not vouch for, and it may vouch for nothing that is written
    // again.
    if (auto pruned = prune(*job_.area, entries_, kept); !pruned) return pruned;
    auto journal = Journal::start(job_.area->journal(), kept, copy_.folder.get(), failed_);
    if (!journal) return tl::unexpected<Error>(std::move(journal.error()));

    Result<> done = make_folders();
    if (done) done = copy_files(**journal);
    // An error of the journal's ended the run, if it had one; what is finished is written down in any case.
    Result<> closed = (*journal)->close();
    if (!closed) return closed;
    if (done) done = make_links();
    if (done) done = finish_folders();
    return done;
  }

  void take_over(const std::vector<Entry>& kept) {
    auto known = kept.begin();
    for (Entry& entry : entries_) {
      if (!is_content(entry)) continue;
      ++monitor_.counters.files_total;
      monitor_.counters.bytes_total += entry.size;
      while (known != kept.end() && known->path < entry.path) ++known;
      if (known == kept.end() || known->path != entry.path) {
        to_copy_.push_back(&entry);
        continue;
      }
      entry.hash = known->hash;
      filled_.resumed_bytes += entry.size;
      ++monitor_.counters.files_done;
      ++monitor_.counters.files_resumed;
      monitor_.counters.bytes_done += entry.size;
      monitor_.counters.bytes_resumed += entry.size;
    }
  }

  Result<> make_folders() {
    for (const Entry& entry : entries_) {
      if (entry.type != EntryType::Folder) continue;
      const Parent parent = open_parent(copy_, entry.path);
      if (!parent.folder ||
          (::mkdirat(parent.folder.get(), parent.name.c_str(), 0700) != 0 && errno != EEXIST)) {
        return fail_errno(errno, "making folder " + copy_.shown(entry.path));
      }
    }
    return {};
  }

  Result<> copy_files(Journal& journal) {
    Throttle throttle(job_.options->max_rate);
    CopyContext context;
    context.source = job_.source;
    context.copy = &copy_;
    context.stop = job_.stop;
    context.failed = &failed_;
    context.throttle = &throttle;
    context.counters = &monitor_.counters;
    context.flush_each = flush_each_;
    context.finished = [&](const Entry& entry) { journal.add(entry); };
    context.lost_attributes = [this](const Entry& entry) { note_lost(entry); };
    context.before_read = job_.before_read;
    RunPlan plan;
    plan.threads = job_.options->threads > 0 ? job_.options->threads : default_threads();
    plan.buffer = usable_chunk(job_.options->chunk);
    plan.files = to_copy_.size();
    plan.work_for = [&](std::uint64_t index) { return copy_file(context, *to_copy_[index]); };
    return run(plan, failed_);
  }

  // Symlinks, and the other names of hard-linked files.
  Result<> make_links() {
    for (Entry& entry : entries_) {
      if (entry.type == EntryType::Folder || is_content(entry)) continue;
      if (*job_.stop) return fail(Errc::Cancelled, "copying " + job_.source->shown("") + ": interrupted");
      const Parent parent = open_parent(copy_, entry.path);
      if (!parent.folder) return fail_errno(errno, "opening the folder of " + copy_.shown(entry.path));
      auto made =
          entry.type == EntryType::Symlink ? make_symlink(entry, parent) : make_hard_link(entry, parent);
      if (!made) return made;
    }
    return {};
  }

  Result<> make_symlink(const Entry& entry, const Parent& parent) {
    const std::string shown = copy_.shown(entry.path);
    if (::symlinkat(entry.target.c_str(), parent.folder.get(), parent.name.c_str()) != 0) {
      return fail_errno(errno, "making symlink " + shown);
    }
    return put_symlink_metadata(parent.folder.get(), parent.name, entry, shown);
  }

  Result<> make_hard_link(Entry& entry, const Parent& parent) {
    const auto first = std::ranges::lower_bound(entries_, entry.link_to, {}, &Entry::path);
    const Parent from = open_parent(copy_, first->path);
    if (!from.folder ||
        ::linkat(from.folder.get(), from.name.c_str(), parent.folder.get(), parent.name.c_str(), 0) != 0) {
      return fail_errno(errno, "linking " + copy_.shown(entry.path));
    }
    const std::string path = std::move(entry.path), link_to = std::move(entry.link_to);
    entry = *first;
    entry.path = path;
    entry.link_to = link_to;
    return {};
  }

  // From the deepest up: a change below changes a folder's times, and a closed folder takes no more changes.
  Result<> finish_folders() {
    for (std::size_t i = entries_.size(); i-- > 0;) {
      const Entry& entry = entries_[i];
      if (entry.type != EntryType::Folder) continue;
      const std::string shown = copy_.shown(entry.path);
      const UniqueFd copied = open_beneath(copy_, entry.path, O_RDONLY | O_DIRECTORY);
      if (!copied) return fail_errno(errno, "opening folder " + shown);
      const UniqueFd original = open_beneath(*job_.source, entry.path, O_RDONLY | O_DIRECTORY);
      if (!original) return fail_errno(errno, "opening folder " + job_.source->shown(entry.path));
      const auto kept = put_metadata(copied.get(), original.get(), entry, shown);
      if (!kept) return tl::unexpected<Error>(kept.error());
      if (*kept != Kept::All) note_lost(entry);
      struct stat info {};
      if (::fstat(original.get(), &info) == 0 && nanoseconds(info.st_mtim) != entry.mtime_ns) {
        changed_folders_.add(entry);
      }
      if (flush_each_ && ::fsync(copied.get()) != 0) return fail_errno(errno, "flushing folder " + shown);
    }
    return {};
  }

  Result<> flush() {
    if (::syncfs(copy_.folder.get()) != 0) {
      return fail_errno(errno, "flushing the file system of " + copy_.shown(""),
                        "its drive may be failing; nothing was published");
    }
    return {};
  }

  void note_lost(const Entry& entry) {
    const std::scoped_lock lock(lost_mutex_);
    lost_attributes_.add(entry);
  }

  void add_warnings() {
    if (lost_attributes_.number > 0) {
      filled_.warnings.push_back("extended attributes or ACLs of " + lost_attributes_.text() +
                                 " were not kept: the destination does not take them");
    }
    if (changed_folders_.number > 0) {
      filled_.warnings.push_back("files came or went in " + changed_folders_.text() +
                                 " while it was copied: the copy has what was there at the start");
    }
  }
};

}  // namespace

Result<Filled> fill(FillJob job, Monitor& monitor) {
  return Fill(std::move(job), monitor).go();
}

std::vector<Entry> finished_before(const PartialArea& area, const std::vector<Entry>& entries) {
  std::vector<Entry> kept;
  auto copy = tree_in(area.folder(), "data");
  if (!copy) return kept;
  for (Entry& entry : vouched_for(area)) {
    const auto now = std::ranges::lower_bound(entries, entry.path, {}, &Entry::path);
    if (now == entries.end() || !is_content(*now) || !is_same_source(entry, *now)) continue;
    const UniqueFd fd = open_beneath(*copy, entry.path, O_PATH | O_NOFOLLOW);
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (static_cast<Bytes>(info.st_size) == entry.size) kept.push_back(std::move(entry));
  }
  std::ranges::sort(kept, {}, &Entry::path);
  const auto is_repeated = [](const Entry& a, const Entry& b) { return a.path == b.path; };
  kept.erase(std::unique(kept.begin(), kept.end(), is_repeated), kept.end());
  return kept;
}

CopyReport report_of(const Manifest& manifest, const Monitor& monitor) {
  CopyReport report;
  report.bytes = manifest.bytes();
  report.files = manifest.files();
  report.hash = manifest.hash();
  report.seconds = monitor.seconds();
  report.memfree_drop_bytes = monitor.memfree_drop();
  return report;
}

Bytes usable_chunk(Bytes wanted) {
  return std::clamp<Bytes>(round_up(wanted, kLargestAlignment), kLargestAlignment, kHashPiece);
}

}  // namespace spark::staging
