// Times of files as nanoseconds since 1970.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

namespace spark::staging {

inline std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
inline std::int64_t nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace spark::staging
