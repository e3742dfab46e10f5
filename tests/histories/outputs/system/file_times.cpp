#include <fcntl.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/histories/outputs/system/libc.hpp"

namespace spark::histories {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds_of(std::int64_t seconds, std::int64_t nanoseconds) {
  return seconds * kSecond + nanoseconds;
}

std::int64_t tick() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds_of(now.tv_sec, now.tv_nsec);
}

}  // namespace

FileTimes& file_times() {
  static FileTimes times;
  return times;
}

void FileTimes::follow(dev_t device, Now now) {
  clocks_[device] = std::move(now);
}

void FileTimes::forget_all() {
  clocks_.clear();
  seen_.clear();
}

std::optional<FileTimes::Seen> FileTimes::shown(dev_t device, ino_t inode, std::int64_t written,
                                                std::int64_t changed) {
  const auto clock = clocks_.find(device);
  if (clock == clocks_.end()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  Seen& known = seen_[{device, inode}];
  const std::int64_t now = clock->second();
  if (known.changed == 0) known.made = now;
  if (known.changed != changed) {
    known.changed = changed;
    known.shown_changed = now;
  }
  if (known.written != written) {
    known.written = written;
    known.shown_written = written < kEra * kSecond ? now : written;
  }
  return known;
}

void FileTimes::translate(struct stat& info) {
  const auto times =
      shown(info.st_dev, info.st_ino, nanoseconds_of(info.st_mtim.tv_sec, info.st_mtim.tv_nsec),
            nanoseconds_of(info.st_ctim.tv_sec, info.st_ctim.tv_nsec));
  if (!times) return;
  info.st_mtim = {times->shown_written / kSecond, times->shown_written % kSecond};
  info.st_ctim = {times->shown_changed / kSecond, times->shown_changed % kSecond};
}

void FileTimes::translate(struct statx& info) {
  const auto times = shown(makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino,
                           nanoseconds_of(info.stx_mtime.tv_sec, info.stx_mtime.tv_nsec),
                           nanoseconds_of(info.stx_ctime.tv_sec, info.stx_ctime.tv_nsec));
  if (!times) return;
  const auto put = [](statx_timestamp& to, std::int64_t time) {
    to.tv_sec = time / kSecond;
    to.tv_nsec = static_cast<std::uint32_t>(time % kSecond);
  };
  put(info.stx_mtime, times->shown_written);
  put(info.stx_ctime, times->shown_changed);
  put(info.stx_btime, times->made);
  info.stx_mask |= STATX_BTIME;
}

void FileTimes::see(const std::string& path) {
  struct stat info {};
  (void)::lstat(path.c_str(), &info);
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    (void)::lstat(entry->path().c_str(), &info);
}

void FileTimes::wait_for_tick() {
  if (is_fine_) return;
  for (const std::int64_t begin = tick(); tick() == begin;) ::usleep(100);
}

void FileTimes::find_out_granularity(const std::string& folder) {
  const std::string file = folder + "/granularity";
  const auto changed = [&](const char* text) {
    std::ofstream(file) << text;
    struct stat info {};
    (void)::stat(file.c_str(), &info);
    return nanoseconds_of(info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
  };
  is_fine_ = true;
  for (unsigned round = 0; round < 20 && is_fine_; ++round) is_fine_ = changed("a") != changed("b");
  (void)::unlink(file.c_str());
}

}  // namespace spark::histories
