#include "staging/copy/verify/digest_check.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/copy/verify/sha256.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kChunk = 4 * kMiB;
constexpr std::size_t kShown = 5;

class DigestCheck {
 public:
  DigestCheck(const Tree& copy, const std::vector<PublishedDigest>& digests, const CopyOptions& options,
              Monitor& monitor, const StopFlag& stop)
      : copy_(copy),
        digests_(digests),
        counters_(monitor.counters),
        stop_(stop),
        throttle_(options.rate.most) {}

  // A file's digest can only be computed from beginning to end: files in parallel, one for each thread.
  Result<> go() {
    count();
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    const auto ran = run_in_threads(
        std::min<std::size_t>(threads, digests_.size()), [this](std::size_t) { work(); },
        [this] { next_ = digests_.size(); });
    if (!ran) return fail_with(ran.error(), "checking " + copy_.shown(""));
    if (error_) return fail(std::move(*error_));
    if (wrong_.empty()) return {};
    std::ranges::sort(wrong_);
    const std::size_t shown = std::min(wrong_.size(), kShown);
    const std::string rest =
        wrong_.size() > shown ? " and " + std::to_string(wrong_.size() - shown) + " more" : "";
    return fail(Errc::Mismatch, copy_.shown("") + ": " + join({wrong_.data(), shown}, "; ") + rest,
                "the copy equals its source: download these files to the source again");
  }

 private:
  const Tree& copy_;
  const std::vector<PublishedDigest>& digests_;
  Counters& counters_;
  const StopFlag& stop_;
  Throttle throttle_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::vector<std::string> wrong_;
  std::optional<Error> error_;

  UniqueFd open(const PublishedDigest& digest) const {
    return open_beneath(copy_, digest.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  }

  void count() {
    counters_.bytes_done = counters_.files_done = counters_.bytes_total = 0;
    counters_.bytes_resumed = counters_.files_resumed = 0;
    counters_.files_total = digests_.size();
    for (const PublishedDigest& digest : digests_) {
      const UniqueFd file = open(digest);
      struct stat info {};
      if (file && ::fstat(file.get(), &info) == 0) counters_.bytes_total += static_cast<Bytes>(info.st_size);
    }
  }

  void work() {
    IoBuffer buffer(kChunk);
    for (std::size_t i = next_++; i < digests_.size(); i = next_++) {
      auto wrong = look_at(digests_[i], buffer);
      const std::scoped_lock lock(mutex_);
      if (!wrong && !error_) error_ = std::move(wrong.error());
      if (error_) return;
      if (!wrong->empty()) wrong_.push_back(std::move(*wrong));
      ++counters_.files_done;
    }
  }

  // Its problem; empty if there is none.
  Result<std::string> look_at(const PublishedDigest& digest, IoBuffer& buffer) {
    const std::string name = printable(digest.path), told_by = printable(digest.told_by);
    const UniqueFd file = open(digest);
    struct stat info {};
    if (!file && (errno == ENOENT || errno == ENOTDIR || errno == EXDEV))
      return name + " is missing, and " + told_by + " lists it";
    if (!file && errno == ELOOP) return name + " is a symlink, and " + told_by + " lists it as a file";
    if (!file || ::fstat(file.get(), &info) != 0)
      return fail_errno(errno, "opening " + copy_.shown(digest.path));
    if (!S_ISREG(info.st_mode)) return name + " is no file, and " + told_by + " lists it as one";
    auto hex = sha256_of(file.get(), digest.path, buffer);
    if (!hex) return hex;
    if (*hex == digest.sha256) return std::string();
    return name + " does not match " + (name == told_by ? "its name" : told_by);
  }

  Result<std::string> sha256_of(int file, const std::string& path, IoBuffer& buffer) {
    const IoMode mode = make_direct(file);
    Sha256 sha256;
    struct stat info {};
    if (::fstat(file, &info) != 0) return fail_errno(errno, "reading " + copy_.shown(path));
    const auto size = static_cast<Bytes>(info.st_size);
    for (Bytes offset = 0;; offset += kChunk) {
      throttle_.wait(std::min<Bytes>(kChunk, size - std::min(size, offset)), [this] { return stop_.load(); });
      if (stop_) return fail(Errc::Cancelled, "checking " + copy_.shown("") + ": interrupted");
      const ReadOutcome read = read_at(file, mode, buffer.data(), kChunk, offset);
      if (read.error != 0) return fail_errno(read.error, "reading " + copy_.shown(path));
      if (!mode.direct) drop_pages(file, offset, read.bytes);
      sha256.add({buffer.data(), read.bytes});
      counters_.bytes_done += read.bytes;
      if (read.bytes < kChunk) return sha256.hex();
    }
  }
};

Result<> check_models(const Tree& tree, const std::filesystem::path& manifest, const StopFlag& stop) {
  auto reader = ManifestReader::open(manifest);
  if (!reader) return reader.take_error();
  Entries entries;
  while (auto entry = reader->next()) entries.push_back(std::move(*entry));
  if (auto whole = reader->error(); !whole) return whole;
  const auto faults = find_model_faults(tree, entries, stop);
  if (!faults) return faults.take_error();
  std::vector<std::string> wrong;
  for (const ModelFault& fault : *faults) wrong.push_back(printable(fault.path) + ": " + fault.what);
  if (wrong.empty()) return {};
  wrong.resize(std::min(wrong.size(), kShown));
  return fail(Errc::Mismatch, tree.shown("") + " holds a model that is not whole: " + join(wrong, "; "),
              "the copy equals its source: download these files to the source again");
}

}  // namespace

Result<std::uint64_t> check_digests(const std::filesystem::path& copy, const std::filesystem::path& manifest,
                                    const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  const auto tree = open_tree(copy);
  if (!tree) return tree.take_error();
  auto reader = ManifestReader::open(manifest);
  if (!reader) return reader.take_error();
  const auto digests = published_digests(*tree, *reader);
  if (!digests) return digests.take_error();
  auto checked = monitor.during(CopyPhase::Verifying,
                                [&] { return DigestCheck(*tree, *digests, options, monitor, stop).go(); });
  if (!checked) return checked.take_error();
  if (auto whole = check_models(*tree, manifest, stop); !whole) return whole.take_error();
  return digests->size();
}

}  // namespace spark::staging
