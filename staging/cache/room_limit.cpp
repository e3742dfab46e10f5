#include "staging/cache/room_limit.hpp"

#include <algorithm>
#include <string>

#include "staging/cache/inventory.hpp"

namespace spark::staging {
namespace {

std::uint64_t at_most(std::uint64_t configured, std::uint64_t there) {
  return configured > 0 ? std::min(configured, there) : there;
}

}  // namespace

Footprint room_limit(const CacheConfig& config, const Space& space, Bytes keep_free) {
  return {at_most(config.capacity, over(space.total, keep_free)),
          at_most(config.capacity_inodes, over(space.inodes_total, config.keep_free_inodes))};
}

Result<> check_fits(const Footprint& copy, const Footprint& limit) {
  if (copy.bytes > limit.bytes) {
    return fail(
        Errc::NoSpace,
        "it needs " + format_bytes(copy.bytes) + " and the whole cache may hold " + format_bytes(limit.bytes),
        "raise cache.capacity, exclude a part of it, or put the cache on a larger drive");
  }
  if (copy.inodes > limit.inodes) {
    return fail(Errc::NoSpace,
                "it needs " + std::to_string(copy.inodes) + " inodes and the whole cache may have " +
                    std::to_string(limit.inodes),
                "exclude a part of it, or put the cache on a file system with more inodes");
  }
  return {};
}

}  // namespace spark::staging
