#include "bench/files/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace spark::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBuffer = kMiB;

// Six significant bits, so bins are 3 % wide like fio's.
std::uint64_t bin_of(std::uint64_t nanoseconds) {
  unsigned shift = 0;
  while ((nanoseconds >> shift) >= 64) ++shift;
  return nanoseconds >> shift << shift;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One thread's share of a pass.
class Worker {
 public:
  Worker(const FileReading& reading, const std::vector<std::string>& files, std::atomic<std::size_t>& next)
      : reading_(reading), files_(files), next_(next), buffer_(kBuffer, '\0') {}

  void run() {
    const Clock::time_point start = Clock::now();
    for (std::size_t i = next_++; i < files_.size() && !error; i = next_++) {
      if (auto done = read_one(files_[i]); !done) error = done.error();
      wait_for_pace(start);
    }
  }

  Measured read;
  std::optional<Error> error;

 private:
  Result<> read_one(const std::string& path) {
    const Clock::time_point start = Clock::now();
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return fail_errno(errno, "opening " + printable(path));
    for (;;) {
      const ssize_t got = ::read(file.get(), buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno(errno, "reading " + printable(path));
      if (got == 0) break;
      read.bytes += static_cast<Bytes>(got);
      if (reading_.progress != nullptr) *reading_.progress += static_cast<std::uint64_t>(got);
    }
    ++read.ios;
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
    ++read.bins[bin_of(static_cast<std::uint64_t>(took.count()))];
    return {};
  }

  void wait_for_pace(Clock::time_point start) const {
    if (reading_.rate == 0) return;
    const double share = static_cast<double>(reading_.rate) / reading_.threads;
    const std::chrono::duration<double> due(static_cast<double>(read.bytes) / share);
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(due));
  }

  const FileReading& reading_;
  const std::vector<std::string>& files_;
  std::atomic<std::size_t>& next_;
  std::string buffer_;
};

Result<> one_pass(const FileReading& reading, const std::vector<std::string>& files, Measured& total) {
  std::atomic<std::size_t> next = 0;
  std::vector<Worker> workers;
  workers.reserve(reading.threads);
  for (unsigned i = 0; i < reading.threads; ++i) workers.emplace_back(reading, files, next);
  const Clock::time_point start = Clock::now();
  const auto ran = run_in_threads(workers.size(), [&](std::size_t number) { workers[number].run(); });
  if (!ran) return fail_with(ran.error(), "reading files");
  // A pass with fewer threads would be a different load.
  if (*ran < workers.size()) {
    return fail(Errc::Failed,
                "starting " + std::to_string(workers.size()) + " threads that read: the system allows " +
                    std::to_string(*ran),
                "raise the limit on processes (`ulimit -u`, pids.max), or ask for fewer threads");
  }
  total.seconds += seconds_since(start);
  for (Worker& worker : workers) {
    if (worker.error) return fail(std::move(*worker.error));
    total.bytes += worker.read.bytes;
    total.ios += worker.read.ios;
    merge_into(total.bins, worker.read.bins);
  }
  return {};
}

// An NFS client asks for no delegation when it opens a file for direct I/O. NFS aligns direct I/O itself.
int without_delegation(Delegations delegations) {
  return delegations == Delegations::None ? 0 : O_DIRECT;
}

// The kernel's NFS client returns a file's read delegation before it sets the mode.
bool set_same_mode(const UniqueFd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && ::fchmod(file.get(), status.st_mode & 07777) == 0;
}

std::uint64_t opens_so_far(const FileReading& reading) {
  return reading.opens_sent ? reading.opens_sent().value_or(0) : 0;
}

}  // namespace

Result<Measured> read_files(const FileReading& reading) {
  Measured total;
  if (reading.opens_sent && reading.opens_sent()) total.opens = 0;
  const std::size_t count = reading.files.size();
  const std::size_t pass = reading.pass == 0 ? count : std::min(reading.pass, count);
  std::mt19937_64 random(reading.seed);
  for (std::size_t first = reading.first;; first += pass) {
    std::vector<std::string> files;
    for (std::size_t i = 0; i < pass; ++i) files.push_back(reading.files[(first + i) % count]);
    std::shuffle(files.begin(), files.end(), random);
    const bool is_new = first + pass <= count;
    const bool is_untouched = is_new && reading.delegations == Delegations::Avoid && !reading.may_be_cached;
    if (!is_untouched) {
      if (auto evicted = evict_from_cache(files, reading.delegations); !evicted) return evicted.take_error();
    }
    const std::uint64_t opens = opens_so_far(reading);
    if (auto done = one_pass(reading, files, total); !done) return done.take_error();
    if (total.opens) *total.opens += opens_so_far(reading) - opens;
    if (total.ios == 0 || std::chrono::duration<double>(total.seconds) >= reading.at_least) return total;
  }
}

Result<> evict_from_cache(const std::vector<std::string>& files, Delegations delegations) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | without_delegation(delegations);
  for (const std::string& path : files) {
    const UniqueFd file(::open(path.c_str(), flags));
    if (!file) return fail_errno(errno, "opening " + printable(path));
    const int number = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    if (number != 0) return fail_errno(number, "not flushed: emptying the page cache of " + printable(path));
    if (delegations == Delegations::GiveBack && !set_same_mode(file))
      return fail_errno(errno, "setting the mode of " + printable(path));
  }
  return {};
}

std::vector<std::string> small_file_names(const std::string& folder, std::uint64_t count) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) names.push_back(folder + "/" + std::to_string(i));
  return names;
}

Result<> make_small_files(const std::string& folder, const std::vector<Bytes>& sizes, Bytes rate,
                          Delegations delegations) {
  if (::mkdir(folder.c_str(), 0700) != 0) return fail_errno(errno, "making the folder " + printable(folder));
  std::mt19937_64 random(::getpid());
  std::string bytes;
  const Clock::time_point start = Clock::now();
  double written_bytes = 0;
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | without_delegation(delegations);
  const std::vector<std::string> names = small_file_names(folder, sizes.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& path = names[i];
    bytes.resize(sizes[i]);
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    }
    const UniqueFd file(::open(path.c_str(), flags, 0600));
    if (!file) return fail_errno(errno, "making " + printable(path));
    if (const int failed = write_all(file.get(), bytes))
      return fail_errno(failed, "writing " + printable(path));
    written_bytes += static_cast<double>(sizes[i]);
    if (rate == 0) continue;
    const std::chrono::duration<double> due(written_bytes / static_cast<double>(rate));
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(due));
  }
  return flush_file_system(folder);
}

}  // namespace spark::bench
