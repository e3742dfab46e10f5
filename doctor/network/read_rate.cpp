#include "doctor/network/read_rate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"

namespace spark::doctor {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTime{1500};
constexpr Bytes kMost = 4'000'000'000, kBlock = kMiB;
constexpr std::size_t kAlignment = 4096, kThreads = 16;

}  // namespace

Result<json::object> read_rate(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(path));
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  const Bytes blocks = end > 0 ? static_cast<Bytes>(end) / kBlock : 0;
  if (blocks == 0) return fail(Errc::Invalid, printable(path) + " is too small to be measured");
  std::atomic<Bytes> next{0}, done{0};
  std::atomic<int> failed{0};
  const auto begun = steady_clock::now();
  const auto read = [&](std::size_t /*thread*/) {
    const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(kAlignment, kBlock),
                                                             &std::free);
    while (buffer && failed == 0 && steady_clock::now() - begun < kTime) {
      const Bytes block = next++;
      if (block * kBlock >= kMost) return;
      const ssize_t got =
          ::pread(fd.get(), buffer.get(), kBlock, static_cast<off_t>(block % blocks * kBlock));
      if (got < 0) failed = errno;
      if (got > 0) done += static_cast<Bytes>(got);
    }
  };
  if (auto ran = run_in_threads(kThreads, read); !ran) return ran.take_error();
  if (failed != 0) return fail_errno(failed, "reading " + printable(path));
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  return json::object{{"bytes_per_second", static_cast<double>(done) / seconds}};
}

}  // namespace spark::doctor
