#include "staging/copy/fill.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/copy/clone.hpp"
#include "staging/copy/copy_files.hpp"
#include "staging/copy/exchange.hpp"
#include "staging/copy/links.hpp"
#include "staging/copy/partial/journal.hpp"
#include "staging/copy/prune.hpp"
#include "staging/copy/transfer/copy_notes.hpp"
#include "staging/copy/transfer/small_files.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/times.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLookingThreads = 8;  // that look for ACLs of folders

// Whether syncfs is known to make every file and folder durable, and to report errors.
bool syncs_as_a_whole(int fd) {
  constexpr std::array<std::uint32_t, 5> kKnown = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                   F2FS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 &&
         std::ranges::find(kKnown, static_cast<std::uint32_t>(info.f_type)) != kKnown.end();
}

class Fill {
 public:
  Fill(CopyJob job, Resumed resumed, Monitor& monitor)
      : job_(std::move(job)),
        resumed_(std::move(resumed)),
        entries_(job_.walked.entries),
        monitor_(monitor),
        throttle_(job_.options->rate.most) {
    struct stat info {};
    if (job_.options->rate.leaves_drive_to_others && ::fstat(job_.source->folder.get(), &info) == 0)
      share_.emplace(info.st_dev);
  }

  Result<Filled> go() {
    Result<> done = monitor_.during(CopyPhase::Copying, [this] { return copy_all(); });
    if (!done && done.error().kind == Errc::NoSpace) {
      done.error().hint = "free some space: the next attempt continues from the copied part";
    }
    if (!done) return done.take_error();
    done = monitor_.during(CopyPhase::Flushing, [this] { return flush(); });
    if (!done) return done.take_error();
    filled_.manifest.entries = std::move(entries_);
    filled_.warnings = notes_.warnings();
    return std::move(filled_);
  }

 private:
  CopyJob job_;
  Resumed resumed_;
  Entries& entries_;
  Monitor& monitor_;
  Tree copy_;
  Filled filled_;
  Throttle throttle_;
  std::optional<DriveShare> share_;
  RunEnd end_;
  CopyContext context_;
  CopyNotes notes_;
  FirstError left_out_;
  std::uint64_t done_before_ = 0, total_before_ = 0;  // files that an attempt before this one has counted

  Result<> copy_all() {
    if (job_.options->io == IoKind::Uring && !has_io_uring()) {
      return fail(
          Errc::Unsupported, "io_uring was asked for, and this system does not let programs use it",
          "leave the choice to spark-stage, or allow it (kernel.io_uring_disabled, container profile)");
    }
    auto tree = tree_in(job_.area->folder(), "data");
    if (!tree) return tree.take_error();
    copy_ = std::move(*tree);
    date_entries();
    if (job_.area->before_change) job_.area->before_change();
    // Only files proven by the journal may stay, and the journal must not prove files that are written again.
    if (auto pruned = prune(*job_.area, entries_, resumed_); !pruned) return pruned;
    auto journal = Journal::start(
        job_.area->journal(), [this](const JournalSink& sink) { write_kept(sink); }, copy_.folder.get(),
        end_);
    if (!journal) return journal.take_error();
    // The journal has everything from the earlier attempt's manifest, and will have more.
    if (auto removed = remove_tree(job_.area->folder(), "manifest"); !removed) return removed;
    set_up_context(**journal);

    Result<> done = make_folders(copy_, entries_);
    if (done) done = begin_view();
    if (done) done = take_unchanged(context_, job_.previous, entries_, resumed_);
    if (done) show_kept();
    if (done) done = copy_files();
    if (done) done = left_out_.check();
    if (done) done = check_complete();
    // If the journal failed, its error ended the run. Finished files are written down in any case.
    Result<> closed = (*journal)->close();
    if (!closed) return closed;
    if (done) done = make_links(*job_.source, copy_, entries_, *job_.stop);
    if (done) done = finish_folders();
    if (done) count_changed();
    return done;
  }

  // For files that this run writes; files of an earlier attempt or copy keep their own time.
  void date_entries() {
    const auto now = seconds_since_1970(job_.now);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const bool is_written_now = !resumed_.finished[i] && !resumed_.unchanged[i];
      if (!is_content(entries_[i]) || !is_written_now || entries_[i].good_at != 0) continue;
      entries_[i].good_at = static_cast<std::uint32_t>(now);
    }
  }

  void set_up_context(Journal& journal) {
    context_.source = job_.source;
    constexpr std::chrono::minutes kLong{1};  // enough for the coarsest times
    context_.walked_at = SystemClock().steady() - (job_.options->has_resting_source ? kLong : kLong * 0);
    context_.has_source = !job_.options->is_source_away;
    context_.copy = &copy_;
    context_.stop = job_.stop;
    context_.end = &end_;
    context_.throttle = &throttle_;
    context_.share = share_ ? &*share_ : nullptr;
    context_.counters = &monitor_.counters;
    context_.journal = &journal;
    context_.flush_each = !syncs_as_a_whole(copy_.folder.get());
    context_.shares_blocks = can_share_blocks(*job_.source, copy_);
    context_.notes = &notes_;
    context_.left_out = &left_out_;
    context_.before_read = job_.before_read;
  }

  // A view could not tell who may read what is below a folder with an ACL, so such a set is staged first.
  // In several threads: a network file system asks its server for each folder.
  Result<> begin_view() {
    Viewer* viewer = job_.options->viewer;
    if (viewer != nullptr && !context_.has_source && viewer->begin(entries_, false, ""))
      context_.viewer = viewer;
    if (viewer == nullptr || !context_.has_source) return {};
    std::atomic<std::size_t> next{0};
    std::atomic<const Entry*> hidden{nullptr};
    const auto ran = run_in_threads(kLookingThreads, [&](std::size_t) {
      for (std::size_t i = next++; i < entries_.size() && hidden == nullptr && !context_.is_stopped();
           i = next++) {
        if (entries_[i].type != EntryType::Folder) continue;
        const UniqueFd folder = open_beneath(*job_.source, entries_[i].path, O_RDONLY | O_DIRECTORY);
        if (!folder || has_acl(folder.get())) hidden = &entries_[i];
      }
    });
    if (!ran) return fail_with(ran.error(), "looking for ACLs");
    const Entry* folder = hidden;
    const std::string why_not =
        folder == nullptr ? "" : job_.source->shown(folder->path) + " has an ACL, or can't be opened";
    if (!context_.is_stopped() && viewer->begin(entries_, true, why_not)) context_.viewer = viewer;
    return context_.check_stop();
  }

  // Pieces of files that are not finished: with a source, copy_file shows them once it has looked at the
  // file.
  void show_kept() const {
    if (context_.viewer == nullptr) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (is_content(entries_[i]) && (resumed_.finished[i] || resumed_.unchanged[i]))
        context_.viewer->kept(entries_[i], {0, unit_count(entries_[i].size)});
    }
    if (context_.has_source) return;
    for (const auto& [index, pieces] : resumed_.begun) {
      const Entry& entry = entries_[index];
      for (std::uint64_t piece = 0; piece < pieces.size(); ++piece)
        if (pieces[piece]) context_.viewer->kept(entry, units_of_piece(entry.size, piece));
    }
  }

  void write_kept(const JournalSink& sink) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (resumed_.finished[i]) sink({JournalLine::Kind::Finished, entries_[i], 0, {}});
    }
    for (const auto& [index, pieces] : resumed_.begun) {
      sink({JournalLine::Kind::Started, entries_[index], 0, {}});
      for (std::uint64_t piece = 0; piece < pieces.size(); ++piece) {
        if (pieces[piece]) sink({JournalLine::Kind::Piece, entries_[index], piece, *pieces[piece]});
      }
    }
  }

  Result<> copy_files() {
    std::vector<Entry*> small, large;
    sort_out(small, large);
    if (job_.options->exchange != nullptr && !context_.shares_blocks) {
      ExchangeJob job{context_, entries_, resumed_, small, large, job_.options->io};
      if (auto exchanged = job_.options->exchange->copy(job); !exchanged) return exchanged;
    }
    if (!context_.has_source && !(small.empty() && large.empty()))
      return fail(Errc::Unavailable, "its source is away, and peers do not send all of it",
                  "files with extended attributes or ACLs are not sent");
    return staging::copy_files(context_,
                               {*job_.options, resumed_, entries_, std::move(small), std::move(large)});
  }

  // Each file is counted once, when all of it is written or was found to be there. An entry's hash proves
  // less: that of a changed file, or of one in a peer's list, was known before.
  Result<> check_complete() const {
    const std::uint64_t done = monitor_.counters.files_done - done_before_;
    const std::uint64_t all = monitor_.counters.files_total - total_before_;
    if (done == all) return {};
    return fail(Errc::Failed,
                "copying " + job_.source->shown("") + ": " + std::to_string(done) + " of " +
                    std::to_string(all) + " files were copied, which is a defect of spark-stage",
                "run it again, and report this");
  }

  void sort_out(std::vector<Entry*>& small, std::vector<Entry*>& large) {
    Counters& counters = monitor_.counters;
    done_before_ = counters.files_done;
    total_before_ = counters.files_total;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (!is_content(entry)) continue;
      ++counters.files_total;
      counters.bytes_total += entry.size;
      if (resumed_.finished[i] || resumed_.unchanged[i]) {
        ++counters.files_done;
        ++counters.files_resumed;
        if (resumed_.unchanged[i]) filled_.unchanged_bytes += entry.size;
      } else {
        (is_small(entry) && !context_.shares_blocks ? small : large).push_back(&entry);
      }
    }
    counters.bytes_done = counters.bytes_resumed = resumed_.bytes + filled_.unchanged_bytes;
    filled_.resumed_bytes = resumed_.bytes;
    if (job_.options->rate.finish_by)
      throttle_.finish_by(*job_.options->rate.finish_by, counters.bytes_total - counters.bytes_done);
  }

  // Deepest first: a change below changes a folder's times, and a read-only folder can't be changed.
  Result<> finish_folders() {
    for (std::size_t i = entries_.size(); i-- > 0;) {
      Entry& entry = entries_[i];
      if (entry.type != EntryType::Folder) continue;
      const std::string shown = copy_.shown(entry.path);
      const UniqueFd copied = open_beneath(copy_, entry.path, O_RDONLY | O_DIRECTORY);
      if (!copied) return fail_errno(errno, "opening folder " + shown);
      if (auto put = put_folder_metadata(copied.get(), entry, shown); !put) return put;
      if (context_.flush_each && ::fsync(copied.get()) != 0)
        return fail_errno(errno, "flushing folder " + shown);
    }
    return {};
  }

  Result<> put_folder_metadata(int copied, Entry& entry, const std::string& shown) {
    if (!context_.has_source) return put_plain_metadata(copied, entry, shown);
    const UniqueFd original = open_beneath(*job_.source, entry.path, O_RDONLY | O_DIRECTORY);
    if (!original) return job_.source->failed(errno, "opening folder", entry.path);
    const auto kept = put_metadata(copied, original.get(), entry, {shown, job_.source->shown(entry.path)});
    if (!kept) return kept.take_error();
    entry.lost_attributes = *kept != Kept::All;
    if (entry.lost_attributes) notes_.add(CopyNotes::Kind::LostAttributes, entry);
    struct stat info {};
    if (::fstat(original.get(), &info) == 0 && nanoseconds(info.st_mtim) != entry.mtime_ns) {
      notes_.add(CopyNotes::Kind::ChangedFolder, entry);
    }
    return {};
  }

  // What the copy's file system could not store as it is, and put_metadata does not report.
  void count_changed() {
    constexpr std::int64_t kEvery32Bits = (std::int64_t{1} << 31) * 1'000'000'000;
    for (const Entry& entry : entries_) {
      if (entry.is_apart) notes_.add(CopyNotes::Kind::IsApart, entry);
      const bool is_usual = entry.mtime_ns >= 0 && entry.mtime_ns < kEvery32Bits;
      if (entry.type == EntryType::Symlink || is_usual) continue;
      const UniqueFd made = open_beneath(copy_, entry.path, O_PATH | O_NOFOLLOW);
      struct stat info {};
      if (!made || ::fstat(made.get(), &info) != 0) continue;
      if (nanoseconds(info.st_mtim) / 1'000'000'000 != entry.mtime_ns / 1'000'000'000)
        notes_.add(CopyNotes::Kind::OtherTime, entry);
    }
  }

  Result<> flush() {
    if (::syncfs(copy_.folder.get()) != 0) {
      return fail_errno(errno, "flushing the file system of " + copy_.shown(""),
                        "its drive may be failing; nothing was published");
    }
    return {};
  }
};

}  // namespace

Result<Filled> fill(CopyJob job, Resumed resumed, Monitor& monitor) {
  return Fill(std::move(job), std::move(resumed), monitor).go();
}

CopyReport report_of(const Summary& summary, const Monitor& monitor) {
  CopyReport report;
  report.bytes = summary.bytes;
  report.files = summary.files;
  report.hash = summary.hash;
  report.seconds = monitor.seconds();
  report.bytes_from_peers = monitor.counters.bytes_from_peers;
  report.memfree_drop_bytes = monitor.memfree_drop();
  return report;
}

void add_notes(CopyReport& report, const WalkNotes& notes) {
  report.skipped = notes.skipped;
  report.warnings.insert(report.warnings.begin(), notes.warnings.begin(), notes.warnings.end());
  report.outside_links = notes.outside_links;
  report.copied_links = notes.copied_links;
}

}  // namespace spark::staging
