#include "staging/copy/transfer/touched.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {
namespace {

struct Comparison {
  Comparison(const Tree& from, const Tree& earlier, const StopFlag& flag, Counters& progress, Bytes rate)
      : source(from), copy(earlier), stop(flag), counters(progress), throttle(rate) {}
  const Tree& source;
  const Tree& copy;
  const StopFlag& stop;
  Counters& counters;
  SteadyTime began = SystemClock().steady();  // after the walk
  RunEnd end;
  Throttle throttle;

  bool is_over() const { return stop || end.has_failed(); }
};

struct Touched {
  std::size_t index = 0;
  Entry entry;  // as walked, with the hash that the earlier copy has
  bool is_equal = false;
};

bool is_touched(const Entry& then, const Entry& now) {
  if (now.type != EntryType::File || then.ctime_ns == now.ctime_ns) return false;
  Entry same = then;
  same.ctime_ns = now.ctime_ns;
  return is_same_source(same, now);
}

class CompareFile final : public FileWork {
 public:
  CompareFile(Comparison& comparison, Touched& touched) : comparison_(comparison), touched_(touched) {}

  Result<> start() override {
    file_.tree = &comparison_.source;
    file_.path = touched_.entry.path.view();
    file_.fd = open_beneath(comparison_.source, file_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat info {};
    settle(touched_.entry.ctime_ns, comparison_.began, [this] { return comparison_.is_over(); });
    if (!file_.fd || ::fstat(file_.fd.get(), &info) != 0)
      return fail_errno(errno, "opening " + comparison_.source.shown(file_.path));
    file_.size = touched_.entry.size;
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
  Result<> before_read(Bytes, std::size_t bytes) override {
    comparison_.throttle.wait(bytes, [this] { return comparison_.is_over(); });
    if (!comparison_.is_over()) return {};
    return fail(Errc::Cancelled, "comparing " + comparison_.source.shown("") + ": interrupted");
  }
  void moved(Bytes bytes) override { comparison_.counters.bytes_done += bytes; }
  void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
    if (!outcome.ended_early) digests_[piece] = outcome.digest;
  }
  Result<bool> finish() override {
    // Its attributes may be what has changed.
    const UniqueFd copy = open_beneath(comparison_.copy, file_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    touched_.is_equal = copy && has_same_attributes(file_.fd.get(), copy.get()).value_or(false) &&
                        digest_of_pieces(digests_) == touched_.entry.hash &&
                        is_unchanged(touched_.entry, file_.fd.get()).value_or(false);
    file_.fd.reset();
    ++comparison_.counters.files_done;
    return true;
  }

 private:
  Comparison& comparison_;
  Touched& touched_;
  OpenedFile file_;
  std::vector<Digest> digests_;
};

Result<> read_all(std::vector<Touched>& touched, Comparison& comparison, const CopyOptions& options) {
  Counters& counters = comparison.counters;
  for (const Touched& one : touched) counters.bytes_total += one.entry.size;
  counters.files_total = touched.size();
  RunPlan plan;
  plan.io = options.io;
  plan.shape = shape_of(options);
  plan.shape.openers = 0;
  plan.counters = &counters;
  plan.files = touched.size();
  plan.work_for = [&](std::uint64_t index) {
    return std::make_unique<CompareFile>(comparison, touched[index]);
  };
  auto done = run(plan, comparison.end);
  // What was equal is not copied, and the rest is read again.
  counters.bytes_total = counters.files_total = counters.bytes_done = counters.files_done = 0;
  return done;
}

struct Found {
  std::vector<Touched> touched;
  bool is_rest_same = true;
};

Result<Found> find_touched(ManifestReader& manifest, const Entries& walked) {
  Found found;
  std::size_t at = 0;
  for (auto then = manifest.next(); then; then = manifest.next()) {
    for (; at < walked.size() && walked[at].path < then->path; ++at) found.is_rest_same = false;
    if (at == walked.size() || walked[at].path != then->path) {
      found.is_rest_same = false;
      continue;
    }
    const Entry& now = walked[at++];
    if (is_same_source(*then, now)) continue;
    if (!is_touched(*then, now)) {
      found.is_rest_same = false;
    } else if (is_content(now)) {  // a further name of a file has its content
      found.touched.push_back({at - 1, now, false});
      found.touched.back().entry.hash = then->hash;
    }
  }
  found.is_rest_same = found.is_rest_same && at == walked.size();
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  return found;
}

Result<> replace(ManifestReader& manifest, const Entries& walked, const std::filesystem::path& path) {
  if (auto again = manifest.rewind(); !again) return again;
  Manifest renewed{manifest.header(), {}};
  while (auto entry = manifest.next()) {
    entry->ctime_ns = walked[renewed.entries.size()].ctime_ns;
    renewed.entries.push_back(std::move(*entry));
  }
  if (auto whole = manifest.error(); !whole) return whole;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return fail_errno(errno, "looking at " + printable(path.native()));
  return write_manifest(path, renewed, {info.st_mode & 0777U, info.st_gid});
}

}  // namespace

Result<Compared> compare_touched(const Tree& source, const Entries& walked, const Destination& earlier,
                                 const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  Compared compared;
  auto manifest = ManifestReader::open(earlier.manifest());
  const auto copy = open_tree(earlier.path());
  if (!manifest || !copy) return compared;  // there is nothing to compare with
  auto found = find_touched(*manifest, walked);
  if (!found) return found.take_error();
  if (found->touched.empty()) return compared;
  Comparison comparison(source, *copy, stop, monitor.counters, options.rate.most);
  const auto read =
      monitor.during(CopyPhase::Verifying, [&] { return read_all(found->touched, comparison, options); });
  if (!read) return read.take_error();
  compared.equal.assign(walked.size(), false);
  for (const Touched& one : found->touched) compared.equal[one.index] = one.is_equal;
  compared.is_all = found->is_rest_same && std::ranges::all_of(found->touched, &Touched::is_equal);
  auto replaced = compared.is_all ? replace(*manifest, walked, earlier.manifest()) : Result<>();
  if (!replaced) return replaced.take_error();
  return compared;
}

}  // namespace spark::staging
