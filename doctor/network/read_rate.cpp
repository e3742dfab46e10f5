#include "doctor/network/read_rate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"

namespace spark::doctor {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTime{1200}, kBurst{100};
constexpr Bytes kMostOfBurst = 1'000'000'000, kMost = 4 * kMostOfBurst, kBlock = kMiB;
constexpr std::size_t kThreads = 16;

// One block after the other, from the beginning again after the last one.
class Reader {
 public:
  Reader(int fd, Bytes blocks) : fd_(fd), blocks_(blocks) {}

  // Returns once all requests have been answered.
  Result<> burst() {
    const auto begun = steady_clock::now();
    const Bytes last = next_ + kMostOfBurst / kBlock;
    const auto read = [&](std::size_t /*thread*/) {
      const PageBuffer buffer = make_page_buffer(kBlock);
      while (buffer && failed_ == 0 && next_ < last && steady_clock::now() - begun < kBurst) {
        const ssize_t got =
            ::pread(fd_, buffer.get(), kBlock, static_cast<off_t>(next_++ % blocks_ * kBlock));
        if (got < 0) failed_ = errno;
        if (got > 0) done_ += static_cast<Bytes>(got);
      }
    };
    auto ran = run_in_threads(kThreads, read);
    return ran ? Result<>() : fail(ran.error());
  }
  int failed() const { return failed_; }
  Bytes done() const { return done_; }

 private:
  const int fd_;
  const Bytes blocks_;
  std::atomic<Bytes> next_{0}, done_{0};
  std::atomic<int> failed_{0};
};

}  // namespace

Result<double> read_rate(const std::string& path, double share) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(path));
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  const Bytes blocks = end > 0 ? static_cast<Bytes>(end) / kBlock : 0;
  if (blocks == 0) return fail(Errc::Invalid, printable(path) + " is too small to be measured");
  Reader reader(fd.get(), blocks);
  const auto begun = steady_clock::now();
  steady_clock::duration moving{};
  for (bool is_last = false; !is_last;) {
    const auto from = steady_clock::now();
    if (auto read = reader.burst(); !read) return read.take_error();
    if (reader.failed() != 0) return fail_errno(reader.failed(), "reading " + printable(path));
    const auto now = steady_clock::now();
    moving += now - from;
    auto pause = std::chrono::duration_cast<steady_clock::duration>((now - from) * (1 / share - 1));
    is_last = reader.done() >= kMost || now + pause >= begun + kTime;
    if (is_last) pause = std::min<steady_clock::duration>(pause, 3 * kBurst);  // the caller's time ends
    std::this_thread::sleep_for(pause);
  }
  return static_cast<double>(reader.done()) / std::chrono::duration<double>(moving).count();
}

}  // namespace spark::doctor
