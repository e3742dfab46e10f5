#include "bench/measure/run_id.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>

#include "base/text.hpp"

namespace spark::bench {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  while (::getrandom(&seed, sizeof seed, 0) < 0 && errno == EINTR) {
  }
  return seed;
}

std::string run_id_of(WallTime started, std::uint64_t seed) {
  std::string id = rfc3339(started);
  std::erase_if(id, [](char c) { return c == '-' || c == ':'; });
  char suffix[8];
  std::snprintf(suffix, sizeof suffix, "-%04x", static_cast<unsigned>(seed & 0xFFFF));
  return id + suffix;
}

}  // namespace spark::bench
