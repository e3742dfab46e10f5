// Times of files as nanoseconds since 1970. Times before 1678 or after 2261 become the nearest that fits.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <limits>

namespace spark::staging {

inline std::int64_t nanoseconds(std::int64_t seconds, std::int64_t rest) {
  constexpr std::int64_t kSecond = 1'000'000'000, kMost = std::numeric_limits<std::int64_t>::max() / kSecond;
  return std::clamp(seconds, -kMost, kMost - 1) * kSecond + rest;
}
inline std::int64_t nanoseconds(const timespec& time) {
  return nanoseconds(time.tv_sec, time.tv_nsec);
}
inline std::int64_t nanoseconds(const statx_timestamp& time) {
  return nanoseconds(time.tv_sec, time.tv_nsec);
}

// Whether a file system that was given the time `given` may store it as `kept`: unchanged; if its times are
// coarser, rounded down to whole seconds (old ext4, ext3, HFS+), two seconds (FAT) or finer steps (exFAT,
// NTFS, SMB); or the first or last time that it has.
inline bool is_time_kept(std::int64_t kept, std::int64_t given) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::array<std::int64_t, 4> kSteps = {100, 10'000'000, kSecond, 2 * kSecond};
  // ext4 and xfs; unsigned numbers (Ceph); FAT and exFAT. In seconds: 1901, 1970, 1980.
  constexpr std::array<std::int64_t, 3> kFirst = {-2'147'483'648, 0, 315'532'800};
  // Old ext4 and xfs, unsigned numbers, FAT and exFAT: 2038, 2106, 2107. Others end after 2262.
  constexpr std::array<std::int64_t, 3> kLast = {2'147'483'647, 4'294'967'295, 4'354'819'199};
  const auto is_at = [&](std::int64_t end) { return kept / kSecond == end; };
  return kept == given || (given < kept && std::ranges::any_of(kFirst, is_at)) ||
         (given > kept && given - kept >= kSecond && std::ranges::any_of(kLast, is_at)) ||
         std::ranges::any_of(kSteps, [&](std::int64_t step) {
           const std::int64_t past = given % step;
           return kept == given - (past < 0 ? past + step : past);
         });
}

}  // namespace spark::staging
