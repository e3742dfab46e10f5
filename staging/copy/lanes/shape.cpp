#include "staging/copy/lanes/shape.hpp"

#include <algorithm>
#include <thread>

#include "base/rounding.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {

Shape shape_of(const CopyOptions& options) {
  Shape shape;
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  // One thread hashes faster than most drives read, and the kernel needs CPUs too.
  shape.threads = std::clamp(cpus / 2, 1U, 4U);
  if (options.threads > 0) shape.threads = std::min(options.threads, 4U);
  if (options.depth > 0) shape.lanes = std::max(1U, options.depth / shape.threads);
  if (options.threads == 1 && options.depth == 0) shape.lanes = 1;
  if (options.threads != 1) shape.openers = std::clamp(cpus / 2, 2U, 8U);
  if (options.chunk > 0) shape.chunk = usable_chunk(options.chunk);
  return shape;
}

ThreadRange small_file_threads(const CopyOptions& options) {
  if (options.threads > 0) return {options.threads, options.threads, options.threads};
  return {8, 2, 32};
}

Bytes usable_chunk(Bytes wanted) {
  return std::clamp<Bytes>(round_up(wanted, kLargestAlignment), kLargestAlignment, kHashPiece);
}

}  // namespace spark::staging
