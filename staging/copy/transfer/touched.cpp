#include "staging/copy/transfer/touched.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/metadata.hpp"

namespace spark::staging {
namespace {

struct Touched {
  std::size_t index = 0;   // among the walked entries
  Entry* entry = nullptr;  // with the hash that the earlier copy has
  bool is_equal = false;
};

bool is_same_but_for_ctime(const Entry& then, const Entry& now) {
  Entry same = then;
  same.ctime_ns = now.ctime_ns;
  return is_same_source(same, now);
}

class CompareFile final : public FileWork {
 public:
  CompareFile(const CopyContext& context, Touched& touched) : context_(context), touched_(touched) {}

  Result<> start() override {
    file_.tree = context_.source;
    file_.path = touched_.entry->path.view();
    file_.fd = open_beneath(*context_.source, file_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat info {};
    if (!file_.fd || ::fstat(file_.fd.get(), &info) != 0)
      return context_.source->failed(errno, "opening", file_.path);
    context_.settle(*touched_.entry);
    file_.size = touched_.entry->size;
    file_.is_sparse = static_cast<Bytes>(info.st_blocks) * 512 < file_.size;
    file_.mode = make_direct(file_.fd.get());
    digests_.assign(piece_count(file_.size), {});
    return {};
  }
  std::vector<std::uint64_t> to_do() const override {
    std::vector<std::uint64_t> all(digests_.size());
    std::iota(all.rbegin(), all.rend(), 0);
    return all;
  }
  WorkFiles files() const override { return {file_}; }
  Result<> before_read(Bytes offset, std::size_t bytes) override {
    return context_.may_read(file_.path, offset, bytes);
  }
  void moved(Bytes bytes) override { context_.counters->bytes_done += bytes; }
  void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
    if (!outcome.ended_early) digests_[piece] = outcome.digest;
  }
  Result<bool> finish() override {
    // Its attributes may be what has changed.
    const UniqueFd copy = open_beneath(*context_.copy, file_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    touched_.is_equal = copy && has_same_attributes(file_.fd.get(), copy.get()).value_or(false) &&
                        digest_of_pieces(digests_) == touched_.entry->hash &&
                        is_unchanged(*touched_.entry, file_.fd.get()).value_or(false);
    if (touched_.is_equal) context_.journal->finished(*touched_.entry);
    file_.fd.reset();
    ++context_.counters->files_done;
    return true;
  }

 private:
  const CopyContext& context_;
  Touched& touched_;
  OpenedFile file_;
  std::vector<Digest> digests_;
};

// What an earlier attempt found equal. Moves the others to the front, and returns their number.
std::size_t take_known(const std::filesystem::path& journal, std::vector<Touched>& touched) {
  const auto path_of = [](const Touched& one) -> std::string_view { return one.entry->path; };
  read_journal(journal, [&](const JournalLine& line) {
    const auto found = std::ranges::lower_bound(touched, line.entry.path.view(), {}, path_of);
    if (found != touched.end() && is_same_source(line.entry, *found->entry))
      found->is_equal = line.entry.hash == found->entry->hash;
  });
  const auto known =
      std::stable_partition(touched.begin(), touched.end(), [](const Touched& one) { return !one.is_equal; });
  return static_cast<std::size_t>(known - touched.begin());
}

Result<> read_all(std::vector<Touched>& touched, CopyContext& context, const PartialArea& area,
                  const CopyOptions& options) {
  const auto remembered = area.folder() / "compared";
  RunPlan plan;
  plan.files = take_known(remembered, touched);
  Counters& counters = *context.counters;
  for (std::size_t i = 0; i < plan.files; ++i) counters.bytes_total += touched[i].entry->size;
  counters.files_total = plan.files;
  plan.io = options.io;
  plan.shape = shape_of(options);
  plan.shape.openers = 0;
  plan.counters = &counters;
  plan.work_for = [&](std::uint64_t index) { return std::make_unique<CompareFile>(context, touched[index]); };
  if (options.rate.finish_by) context.throttle->finish_by(*options.rate.finish_by, counters.bytes_total);
  const auto write_known = [&](const JournalSink& sink) {
    for (std::size_t i = plan.files; i < touched.size(); ++i)
      sink({JournalLine::Kind::Finished, *touched[i].entry, 0, {}});
  };
  const auto data = tree_in(area.folder(), "data");
  if (!data) return data.take_error();
  auto journal = Journal::start(remembered, write_known, data->folder.get(), *context.end);
  if (!journal) return journal.take_error();
  context.journal = journal->get();
  auto done = run(plan, *context.end);
  auto closed = (*journal)->close();
  // What was equal is not copied, and the rest is read again.
  counters.bytes_total = counters.files_total = counters.bytes_done = counters.files_done = 0;
  return closed ? std::move(done) : std::move(closed);
}

struct Found {
  std::vector<Touched> touched;  // by path
  bool is_rest_same = true;
};

Result<Found> find_touched(ManifestReader& manifest, Entries& walked) {
  Found found;
  std::size_t at = 0;
  for (auto then = manifest.next(); then; then = manifest.next()) {
    for (; at < walked.size() && walked[at].path < then->path; ++at) found.is_rest_same = false;
    if (at == walked.size() || walked[at].path != then->path) {
      found.is_rest_same = false;
      continue;
    }
    Entry& now = walked[at++];
    if (is_same_source(*then, now)) continue;
    if (!is_same_but_for_ctime(*then, now)) {
      found.is_rest_same = false;
      continue;
    }
    if (!is_content(now)) continue;  // a further name of a file has its content
    now.hash = then->hash;
    found.touched.push_back({at - 1, &now});
  }
  found.is_rest_same = found.is_rest_same && at == walked.size();
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  return found;
}

}  // namespace

Result<Compared> compare_touched(const Tree& source, Entries& walked, const Destination& earlier,
                                 const PartialArea& area, const CopyOptions& options, Monitor& monitor,
                                 const StopFlag& stop) {
  Compared compared;
  auto manifest = ManifestReader::open(earlier.manifest());
  const auto copy = open_tree(earlier.path());
  if (!manifest || !copy) return compared;  // there is nothing to compare with
  auto found = find_touched(*manifest, walked);
  if (!found) return found.take_error();
  std::optional<DriveShare> share;
  struct stat info {};
  if (options.rate.leaves_drive_to_others && ::fstat(source.folder.get(), &info) == 0)
    share.emplace(info.st_dev);
  RunEnd end;
  Throttle throttle(options.rate.most);
  CopyContext context;
  context.source = &source;
  context.copy = &*copy;
  context.stop = &stop;
  context.end = &end;
  context.throttle = &throttle;
  context.share = share ? &*share : nullptr;
  context.counters = &monitor.counters;
  context.walked_at = SystemClock().steady();
  if (!found->touched.empty()) {
    const auto read = monitor.during(CopyPhase::Verifying,
                                     [&] { return read_all(found->touched, context, area, options); });
    if (!read) return read.take_error();
  }
  compared.equal.assign(walked.size(), false);
  for (const Touched& one : found->touched) compared.equal[one.index] = one.is_equal;
  // With nothing touched, the copy is not to be renewed: it is damaged or doubtful.
  compared.is_same = found->is_rest_same && !found->touched.empty() &&
                     std::ranges::all_of(found->touched, &Touched::is_equal);
  return compared;
}

bool is_same_source(const Tree& source, const Tree& copy, ManifestReader& manifest, const Entries& walked) {
  std::vector<const Entry*> folders;
  for (const Entry& now : walked) {
    const auto then = manifest.next();
    if (!then || !is_same_source(*then, now)) return false;
    if (now.type == EntryType::Folder && then->ctime_ns != now.ctime_ns && !then->lost_attributes)
      folders.push_back(&now);
  }
  if (manifest.next() || !manifest.error()) return false;
  return std::ranges::all_of(folders, [&](const Entry* one) {
    const UniqueFd folder = open_beneath(source, one->path, O_RDONLY | O_DIRECTORY);
    const UniqueFd copied = open_beneath(copy, one->path, O_RDONLY | O_DIRECTORY);
    return folder && copied && has_same_attributes(folder.get(), copied.get()).value_or(false);
  });
}

Result<> renew(const Destination& copy, const Entries& walked) {
  auto manifest = ManifestReader::open(copy.manifest());
  if (!manifest) return manifest.take_error();
  Manifest renewed{manifest->header(), {}};
  while (auto entry = manifest->next()) {
    if (entry->type != EntryType::Folder) entry->ctime_ns = walked[renewed.entries.size()].ctime_ns;
    renewed.entries.push_back(std::move(*entry));
  }
  if (auto whole = manifest->error(); !whole) return whole;
  return write_manifest(copy.manifest(), renewed, readers_of(renewed));
}

}  // namespace spark::staging
