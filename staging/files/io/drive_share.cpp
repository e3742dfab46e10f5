#include "staging/files/io/drive_share.hpp"

#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/file.hpp"
#include "base/file_system.hpp"

namespace spark::staging {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWindow = 250ms, kQuiet = 500ms, kFree = 10s;
// Requests in progress at one end of a window and not at the other; fewer of them while there is a limit.
constexpr Bytes kUnderWay = 64 * kMiB, kUnderWayLimited = 8 * kMiB;
// Per second. At this rate the largest checkpoints, 141 GB, take two and a half hours.
constexpr Bytes kLeast = 16 * kMiB;
constexpr double kShare = 0.01;        // of the other users' rate
constexpr Bytes kNoticed = 1'000'000;  // bytes per second

bool is_idle_class() {
  constexpr int kWhoProcess = 1, kClassShift = 13, kClassIdle = 3;  // linux/ioprio.h
  return ::syscall(SYS_ioprio_get, kWhoProcess, 0) >> kClassShift == kClassIdle;
}

// See Documentation/block/stat.rst: the third and the seventh number are the sectors read and written.
std::optional<Bytes> bytes_of(const std::filesystem::path& counters) {
  const auto text = read_file(counters);
  if (!text) return {};
  std::istringstream numbers(*text);
  std::array<Bytes, 7> values{};
  for (Bytes& value : values) {
    if (!(numbers >> value)) return {};
  }
  return (values[2] + values[6]) * 512;
}

}  // namespace

void OthersUse::start(const Moment& now, Bytes limit) {
  if (limit == 0 && limit_ != 0) free_since_ = now.when;
  begin_ = now;
  limit_ = limit;
}

Bytes OthersUse::limit(Bytes moved_by_drive, Bytes moved_by_copy, SteadyTime now) {
  const Moment moment{now, moved_by_drive, moved_by_copy};
  if (!begin_) {
    start(moment, kLeast);
    return limit_;
  }
  const Duration elapsed = std::chrono::duration_cast<Duration>(now - begin_->when);
  if (elapsed < kWindow) return limit_;
  const Bytes by_drive = moved_by_drive - std::min(moved_by_drive, begin_->by_drive);
  const Bytes by_copy = moved_by_copy - std::min(moved_by_copy, begin_->by_copy);
  const Bytes certain = by_copy + (limit_ == 0 ? kUnderWay : kUnderWayLimited);
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const double by_others = static_cast<double>(by_drive - std::min(by_drive, certain)) / seconds;
  if (by_others >= static_cast<double>(kNoticed)) {
    start(moment, std::max(kLeast, static_cast<Bytes>(by_others * kShare)));
  } else if (limit_ != 0 && elapsed >= kQuiet) {
    start(moment, 0);
  } else if (limit_ == 0 && now - free_since_ >= kFree) {
    start(moment, kLeast);
  } else if (limit_ == 0) {
    start(moment, 0);
  }
  return limit_;
}

DriveShare::DriveShare(dev_t device, const std::filesystem::path& root)
    : counters_(root / "dev/block" / device_text(device) / "stat") {
  if (!bytes_of(counters_)) counters_.clear();
}

Bytes DriveShare::limit(Bytes bytes, SteadyTime now) {
  if (counters_.empty()) return 0;
  const std::scoped_lock lock(mutex_);
  asked_for_ += bytes;
  if (!is_idle_class()) {
    others_ = {};
    return limit_ = 0;
  }
  if (now - read_at_ < kWindow / 5) return limit_;
  read_at_ = now;
  if (const auto moved = bytes_of(counters_)) limit_ = others_.limit(*moved, asked_for_, now);
  return limit_;
}

}  // namespace spark::staging
