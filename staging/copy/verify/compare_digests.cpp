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
#include "staging/files/source_trouble.hpp"
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
  DigestCheck(const Tree& copy, const FilesToRead& files, const CopyOptions& options, Monitor& monitor,
              const StopFlag& stop)
      : copy_(copy), files_(files), counters_(monitor.counters), stop_(stop), throttle_(options.rate.most) {}

  // A file's digest can only be computed from beginning to end: files in parallel, one for each thread.
  Result<> go() {
    count();
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    const auto ran = run_in_threads(
        std::min<std::size_t>(threads, files_.count), [this](std::size_t) { work(); },
        [this] { next_ = files_.count; });
    if (!ran) return fail_with(ran.error(), "checking " + copy_.shown(""));
    if (error_) return fail(std::move(*error_));
    if (wrong_.empty()) return {};
    std::ranges::sort(wrong_);
    return fail(Errc::Mismatch, copy_.shown("") + ": " + join_first(wrong_, kShown, "; "),
                "the copy equals its source: download these files to the source again");
  }

 private:
  const Tree& copy_;
  const FilesToRead& files_;
  Counters& counters_;
  const StopFlag& stop_;
  Throttle throttle_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;  // for what follows
  std::vector<std::string> wrong_;
  std::optional<Error> error_;

  UniqueFd open(const PublishedDigest& digest) const {
    return open_beneath(copy_, digest.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  }

  tl::unexpected<Error> interrupted() const {
    return fail(Errc::Cancelled, "checking " + copy_.shown("") + ": interrupted");
  }

  void count() {
    counters_.bytes_done = counters_.files_done = counters_.bytes_total = 0;
    counters_.bytes_resumed = counters_.files_resumed = 0;
    counters_.files_total = files_.count;
    if (files_.bytes) counters_.bytes_total = *files_.bytes;
    for (std::size_t i = 0; !files_.bytes && i < files_.count; ++i) {
      const UniqueFd file = open(files_.file(i).digest);
      struct stat info {};
      if (file && ::fstat(file.get(), &info) == 0) counters_.bytes_total += static_cast<Bytes>(info.st_size);
    }
  }

  void work() {
    IoBuffer buffer(kChunk);
    for (std::size_t i = next_++; i < files_.count; i = next_++) {
      auto wrong = look_at(i, buffer);
      ++counters_.files_done;
      if (wrong && wrong->empty() && !has_failed_) continue;
      const std::scoped_lock lock(mutex_);
      if (!wrong && !error_) error_ = std::move(wrong.error());
      has_failed_ = error_.has_value();
      if (error_) return;
      if (!wrong->empty()) wrong_.push_back(std::move(*wrong));
    }
  }

  // Its problem; empty if there is none.
  Result<std::string> look_at(std::size_t index, IoBuffer& buffer) {
    const auto [digest, needs_sha256] = files_.file(index);
    const auto problem = [&digest = digest](const std::string& before, const std::string& after = {}) {
      return printable(digest.path) + before + printable(digest.told_by) + after;
    };
    const UniqueFd file = open(digest);
    struct stat info {};
    if (!file && (errno == ENOENT || errno == ENOTDIR || errno == EXDEV))
      return problem(" is missing, and ", " lists it");
    if (!file && errno == ELOOP) return problem(" is a symlink, and ", " lists it as a file");
    if (!file || ::fstat(file.get(), &info) != 0)
      return fail_errno(errno, "opening " + copy_.shown(digest.path));
    if (!S_ISREG(info.st_mode)) return problem(" is no file, and ", " lists it as one");
    const auto size = static_cast<Bytes>(info.st_size);
    const bool is_git = digest.hex.size() == kGitDigits;
    std::optional<GitSha1> git;
    std::optional<Sha256> sha256;
    if (is_git) git.emplace(size);
    if (needs_sha256 || (!is_git && !digest.hex.empty())) sha256.emplace();
    PieceSums pieces;
    const auto take = [&](std::span<const std::byte> bytes) {
      if (git) git->add(bytes);
      if (sha256) sha256->add(bytes);
      if (files_.on_read) pieces.add(bytes);
    };
    if (auto all = read_all(file.get(), digest.path, size, buffer, take); !all) {
      if (!files_.on_unreadable || !is_medium_error(all.error().number)) return all.take_error();
      files_.on_unreadable(index, all.error().number);
      return all.error().what;
    }
    std::string hex = sha256 ? sha256->hex() : "";
    const bool is_right = digest.hex.empty() || (is_git ? git->hex() : hex) == digest.hex;
    if (files_.on_read) files_.on_read(index, file.get(), {std::move(hex), pieces.digest(), is_right});
    if (is_right) return std::string();
    return digest.path == digest.told_by ? printable(digest.path) + " does not match its name"
                                         : problem(" does not match ");
  }

  Result<> read_all(int file, const std::string& path, Bytes size, IoBuffer& buffer,
                    const std::function<void(std::span<const std::byte>)>& take) {
    if (stop_) return interrupted();
    if (size == 0) return {};
    const IoMode mode = make_direct(file);
    for (Bytes offset = 0;; offset += kChunk) {
      throttle_.wait(std::min<Bytes>(kChunk, size - std::min(size, offset)), [this] { return stop_.load(); });
      if (stop_) return interrupted();
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

Result<> read_and_compare(const Tree& tree, const FilesToRead& files, const CopyOptions& options,
                          Monitor& monitor, const StopFlag& stop) {
  return monitor.during(CopyPhase::Verifying,
                        [&] { return DigestCheck(tree, files, options, monitor, stop).go(); });
}

Result<> compare_digests(const Tree& copy, const std::vector<PublishedDigest>& digests,
                         const CopyOptions& options, Monitor& monitor, const StopFlag& stop,
                         std::vector<FileSums>* sums) {
  FilesToRead files;
  files.count = digests.size();
  files.file = [&](std::size_t index) { return FileToRead{digests[index], sums != nullptr}; };
  if (sums != nullptr) {
    sums->assign(digests.size(), {});
    files.on_read = [sums](std::size_t index, int /*fd*/, FileSums read) {
      (*sums)[index] = std::move(read);
    };
  }
  return read_and_compare(copy, files, options, monitor, stop);
}

}  // namespace spark::staging
