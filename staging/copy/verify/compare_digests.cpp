#include "staging/copy/verify/compare_digests.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/text.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/io/throttle.hpp"
#include "staging/models/sha256.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kChunk = 4 * kMiB;
constexpr std::size_t kShown = 5;
constexpr std::size_t kGitDigits = 40;

static_assert(kHashPiece % kChunk == 0);

// A file's hash as manifests have it, of chunks in their order.
class PieceSums {
 public:
  void add(std::span<const std::byte> chunk) {
    if (in_piece_ == kHashPiece) end_piece();
    hasher_->add(chunk);
    in_piece_ += chunk.size();
  }
  Digest digest() {
    if (in_piece_ > 0 || pieces_.empty()) end_piece();
    return digest_of_pieces(pieces_);
  }

 private:
  std::vector<Digest> pieces_;
  std::optional<Hasher> hasher_{std::in_place};
  Bytes in_piece_ = 0;

  void end_piece() {
    pieces_.push_back(hasher_->digest());
    hasher_.emplace();
    in_piece_ = 0;
  }
};

class DigestCheck {
 public:
  DigestCheck(const Tree& copy, const std::vector<PublishedDigest>& digests, const CopyOptions& options,
              Monitor& monitor, const StopFlag& stop, std::vector<FileSums>* sums)
      : copy_(copy),
        digests_(digests),
        sums_(sums),
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
  std::vector<FileSums>* sums_;  // none if the caller needs only the comparison
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
      auto wrong = look_at(i, buffer);
      const std::scoped_lock lock(mutex_);
      if (!wrong && !error_) error_ = std::move(wrong.error());
      if (error_) return;
      if (!wrong->empty()) wrong_.push_back(std::move(*wrong));
      ++counters_.files_done;
    }
  }

  // Its problem; empty if there is none.
  Result<std::string> look_at(std::size_t index, IoBuffer& buffer) {
    const PublishedDigest& digest = digests_[index];
    const std::string name = printable(digest.path), told_by = printable(digest.told_by);
    const UniqueFd file = open(digest);
    struct stat info {};
    if (!file && (errno == ENOENT || errno == ENOTDIR || errno == EXDEV))
      return name + " is missing, and " + told_by + " lists it";
    if (!file && errno == ELOOP) return name + " is a symlink, and " + told_by + " lists it as a file";
    if (!file || ::fstat(file.get(), &info) != 0)
      return fail_errno(errno, "opening " + copy_.shown(digest.path));
    if (!S_ISREG(info.st_mode)) return name + " is no file, and " + told_by + " lists it as one";
    const auto size = static_cast<Bytes>(info.st_size);
    const bool is_git = digest.hex.size() == kGitDigits;
    std::optional<GitSha1> git;
    std::optional<Sha256> sha256;
    if (is_git) git.emplace(size);
    if (!is_git || sums_ != nullptr) sha256.emplace();
    PieceSums pieces;
    const auto take = [&](std::span<const std::byte> bytes) {
      if (git) git->add(bytes);
      if (sha256) sha256->add(bytes);
      if (sums_ != nullptr) pieces.add(bytes);
    };
    if (auto all = read_all(file.get(), digest.path, size, buffer, take); !all) return all.take_error();
    const std::string hex = sha256 ? sha256->hex() : "";
    if (sums_ != nullptr) (*sums_)[index] = {hex, pieces.digest()};
    if (digest.hex.empty() || (is_git ? git->hex() : hex) == digest.hex) return std::string();
    return name + " does not match " + (name == told_by ? "its name" : told_by);
  }

  Result<> read_all(int file, const std::string& path, Bytes size, IoBuffer& buffer,
                    const std::function<void(std::span<const std::byte>)>& take) {
    const IoMode mode = make_direct(file);
    for (Bytes offset = 0;; offset += kChunk) {
      throttle_.wait(std::min<Bytes>(kChunk, size - std::min(size, offset)), [this] { return stop_.load(); });
      if (stop_) return fail(Errc::Cancelled, "checking " + copy_.shown("") + ": interrupted");
      const ReadOutcome read = read_at(file, mode, buffer.data(), kChunk, offset);
      if (read.error != 0) return fail_errno(read.error, "reading " + copy_.shown(path));
      if (!mode.direct) drop_pages(file, offset, read.bytes);
      take({buffer.data(), read.bytes});
      counters_.bytes_done += read.bytes;
      if (read.bytes < kChunk) return {};
    }
  }
};

}  // namespace

Result<> compare_digests(const Tree& copy, const std::vector<PublishedDigest>& digests,
                         const CopyOptions& options, Monitor& monitor, const StopFlag& stop,
                         std::vector<FileSums>* sums) {
  if (sums != nullptr) sums->assign(digests.size(), {});
  return monitor.during(CopyPhase::Verifying,
                        [&] { return DigestCheck(copy, digests, options, monitor, stop, sums).go(); });
}

}  // namespace spark::staging
