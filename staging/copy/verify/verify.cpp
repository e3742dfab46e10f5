#include "staging/copy/verify/verify.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/verify/further_names.hpp"
#include "staging/files/io/page_cache.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/times.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kShownDifferences = 5;

// The difference between an entry and the object found under its name; empty if there is none.
std::string difference(const Entry& entry, const Entry& found, std::uint32_t file_mode_mask, FileTimes times,
                       Comparison comparison) {
  if (entry.type != found.type) return "is of another type";
  if (entry.type == EntryType::Symlink) return entry.target == found.target ? "" : "points elsewhere";
  if (entry.type == EntryType::File && entry.size != found.size) {
    return "has " + std::to_string(found.size) + " bytes instead of " + std::to_string(entry.size);
  }
  if (times == FileTimes::Compared && entry.type == EntryType::File &&
      !is_time_kept(found.mtime_ns, entry.mtime_ns))
    return "has another modification time";
  if (comparison == Comparison::Whole) return "";
  const std::uint32_t mask = entry.type == EntryType::File ? file_mode_mask : 07777;
  // Without its ACL a copy may be open to fewer users.
  const std::uint32_t expected = kept_mode(entry) & mask,
                      left_out = entry.lost_attributes ? expected & 077U : 0;
  if ((found.mode | left_out) != expected) return "has other permissions";
  if (::geteuid() == 0 && (entry.uid != found.uid || entry.gid != found.gid)) return "has another owner";
  return "";
}

// Collects differing names from several threads.
class Differences {
 public:
  explicit Differences(std::vector<std::string> known) : names_(std::move(known)) {}
  void add(std::string difference) {
    const std::scoped_lock lock(mutex_);
    names_.push_back(std::move(difference));
  }
  Result<> result(const Tree& copy) { return check_equal(copy, names_); }

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
};

struct VerifyContext {
  const Tree& copy;
  const StopFlag& stop;
  RunEnd& end;
  Counters& counters;
  Throttle& throttle;
  Differences& differences;
};

class VerifyFile final : public FileWork {
 public:
  VerifyFile(const VerifyContext& context, Entry entry) : context_(context), entry_(std::move(entry)) {}

  Result<> start() override {
    if (auto go_on = check(); !go_on) return go_on;
    file_.tree = &context_.copy;
    file_.path = entry_.path;
    file_.fd = open_beneath(context_.copy, entry_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat info {};
    if (!file_.fd || ::fstat(file_.fd.get(), &info) != 0) {
      return fail_errno(errno, "opening " + context_.copy.shown(entry_.path));
    }
    file_.size = entry_.size;
    file_.is_sparse = static_cast<Bytes>(info.st_blocks) * 512 < entry_.size;
    file_.mode = make_direct(file_.fd.get());
    // Bypasses the page cache.
    if (!file_.mode.direct) drop_pages(file_.fd.get(), 0, 0);
    digests_.assign(piece_count(entry_.size), {});
    return {};
  }

  std::vector<std::uint64_t> to_do() const override {
    std::vector<std::uint64_t> all(digests_.size());
    std::iota(all.rbegin(), all.rend(), 0);
    return all;
  }
  WorkFiles files() const override { return {file_}; }

  Result<> before_read(Bytes, std::size_t bytes) override {
    context_.throttle.wait(bytes, [this] { return context_.stop || context_.end.has_failed(); });
    return check();
  }

  void moved(Bytes bytes) override { context_.counters.bytes_done += bytes; }

  void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
    if (!outcome.ended_early) digests_[piece] = outcome.digest;
  }

  Result<bool> finish() override {
    if (digest_of_pieces(digests_) != entry_.hash) {
      context_.differences.add(printable(entry_.path) + " has other content");
    }
    ++context_.counters.files_done;
    return true;
  }

 private:
  const VerifyContext& context_;
  const Entry entry_;
  OpenedFile file_;
  std::vector<Digest> digests_;

  Result<> check() const {
    if (!context_.stop && !context_.end.has_failed()) return {};
    return fail(Errc::Cancelled, "verifying " + context_.copy.shown("") + ": interrupted");
  }
};

struct ToVerify {
  Summary summary;
  Bytes bytes = 0;              // of the files that are read
  std::uint64_t files = 0;      // with content of their own
  std::set<std::string> split;  // further names that have content of their own nevertheless
  bool has(const Entry& entry) const {
    return is_content_of_copy(entry) || split.contains(std::string(entry.path.view()));
  }
};

Result<ToVerify> count(const Tree& copy, ManifestReader& manifest) {
  Summing summing(kSmallestBlock);
  FurtherNames names(copy);
  ToVerify all;
  while (const auto entry = manifest.next()) {
    summing.add(*entry);
    if (names.is_split(*entry)) {
      all.split.emplace(entry->path.view());
      all.bytes += entry->size;
    }
    if (all.has(*entry)) ++all.files;
  }
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  all.summary = summing.done();
  all.bytes += all.summary.bytes;
  return all;
}

Result<> check_contents(const VerifyContext& context, ManifestReader& manifest, const ToVerify& all,
                        const CopyOptions& options) {
  std::mutex mutex;  // guards the manifest: each file is taken by the thread that will read it
  RunPlan plan;
  plan.io = options.io;
  plan.shape = shape_of(options);
  plan.shape.openers =
      0;  // most files may be small: passing each to another thread takes longer than opening it
  plan.counters = &context.counters;
  plan.files = all.files;
  plan.work_for = [&](std::uint64_t) {
    const std::scoped_lock lock(mutex);
    auto entry = manifest.next();
    while (entry && !all.has(*entry)) entry = manifest.next();
    return std::make_unique<VerifyFile>(context, entry.value());
  };
  return run(plan, context.end);
}

}  // namespace

Result<> check_equal(const Tree& copy, std::vector<std::string> differences) {
  if (differences.empty()) return {};
  std::ranges::sort(differences);
  return fail(
      Errc::Mismatch,
      copy.shown("") + " differs from its manifest: " + join_first(differences, kShownDifferences, "; "),
      "copy it again; if it happens again, test the drive and the memory");
}

Result<std::vector<std::string>> compare_metadata(const Tree& copy, ManifestReader& manifest,
                                                  std::size_t limit, const StopFlag& stop, FileTimes times,
                                                  Comparison comparison) {
  const auto walked = walk(copy, {}, stop);
  if (!walked) return walked.take_error();
  const bool is_exact = comparison == Comparison::Exact;
  std::vector<std::string> differences;
  const auto add = [&](std::string_view path, const std::string& what) {
    if (differences.size() == limit) return;
    differences.push_back((path.empty() ? "the root" : printable(path)) + " " + what);
  };
  auto found = walked->entries.begin();
  const auto end = walked->entries.end();
  while (const auto entry = manifest.next()) {
    for (; found != end && found->path < entry->path; ++found)
      if (is_exact) add(found->path, "was added");
    if (found == end || found->path != entry->path) {
      add(entry->path, "is missing");
      continue;
    }
    const std::string what = difference(*entry, *found++, copy.file_mode_mask, times, comparison);
    if (!what.empty()) add(entry->path, what);
  }
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  if (!is_exact) return differences;
  for (; found != end; ++found) add(found->path, "was added");
  for (const std::string& special : walked->skipped) {
    if (differences.size() < limit) differences.push_back(special + " was added");
  }
  return differences;
}

Result<Summary> verify_copy(const Tree& copy, ManifestReader& manifest, const CopyOptions& options,
                            Monitor& monitor, const StopFlag& stop, FileTimes times) {
  monitor.counters.bytes_done = monitor.counters.files_done = 0;
  monitor.counters.bytes_resumed = monitor.counters.files_resumed = 0;
  const auto all = count(copy, manifest);
  if (!all) return all.take_error();
  monitor.counters.bytes_total = all->bytes;
  monitor.counters.files_total = all->files;
  auto same = monitor.during(CopyPhase::Verifying, [&]() -> Result<> {
    if (auto again = manifest.rewind(); !again) return again;
    auto known = compare_metadata(copy, manifest, kShownDifferences, stop, times);
    if (!known) return known.take_error();
    Differences differences(std::move(*known));
    if (auto equal = differences.result(copy); !equal) return equal;
    RunEnd end;
    Throttle throttle(options.rate.most);
    const VerifyContext context{copy, stop, end, monitor.counters, throttle, differences};
    if (auto again = manifest.rewind(); !again) return again;
    if (auto done = check_contents(context, manifest, *all, options); !done) return done;
    return differences.result(copy);
  });
  if (!same) return same.take_error();
  return all->summary;
}

Result<> restore_times(const Tree& copy, ManifestReader& manifest) {
  while (const auto entry = manifest.next()) {
    if (entry->type != EntryType::File) continue;
    const Parent parent = open_parent(copy, entry->path);
    if (!parent.folder || ::utimensat(parent.folder.get(), parent.name.c_str(), times_of(*entry).data(),
                                      AT_SYMLINK_NOFOLLOW) != 0)
      return fail_errno(errno, "setting the times of " + copy.shown(entry->path));
  }
  return manifest.error();
}

Result<> verify_partial(PartialArea& area, const CopyOptions& options, Monitor& monitor,
                        const StopFlag& stop) {
  const auto copy = open_tree(area.data());
  if (!copy) return copy.take_error();
  auto manifest = ManifestReader::open(area.manifest());
  if (!manifest) return manifest.take_error();
  auto same = verify_copy(*copy, *manifest, options, monitor, stop);
  if (same) return {};
  if (is_damage(same.error())) {
    if (auto cleared = area.clear(); !cleared)
      same.error().what += "; it can't be deleted: " + cleared.error().what;
  }
  return same.take_error();
}

}  // namespace spark::staging
