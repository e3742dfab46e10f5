#include "staging/copy/lanes/shape.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "base/units.hpp"
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
  // A thread has up to 40 files open, and their folders.
  constexpr rlim_t kFilesOfAThread = 48, kOtherFiles = 160;
  ThreadRange range{8, 2, 32};
  if (options.threads > 0) range = {options.threads, options.threads, options.threads};
  struct rlimit files {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return range;
  if (files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) ::getrlimit(RLIMIT_NOFILE, &files);
  }
  const rlim_t left = files.rlim_cur - std::min(files.rlim_cur, kOtherFiles);
  const auto most = static_cast<unsigned>(std::clamp<rlim_t>(left / kFilesOfAThread, 1, 4096));
  return {std::min(range.first, most), std::min(range.fewest, most), std::min(range.most, most)};
}

Bytes usable_chunk(Bytes wanted) {
  return std::clamp<Bytes>(rounded_up(wanted, kLargestAlignment), kLargestAlignment, kHashPiece);
}

}  // namespace spark::staging
