#include "staging/copy/all_files.hpp"

#include <algorithm>
#include <future>

#include "base/threads.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/large_files.hpp"
#include "staging/copy/transfer/left_files.hpp"
#include "staging/copy/transfer/small_files.hpp"

namespace spark::staging {
namespace {

// Returns those that are left. With readers there are none: they do not wait for the large files.
Result<std::vector<Entry*>> copy_small(CopyContext& context, const FilesJob& job,
                                       const ThreadRange& threads) {
  if (context.viewer == nullptr) return copy_small_files(context, job.small, threads, job.options.io);
  LeftFiles left(context, job.options.io,
                 [&](Entry& entry) { return work_for(context, entry, job.resumed, job.entries); });
  auto rest = copy_small_files(context, job.small, threads, job.options.io, &left);
  if (!rest) return rest;
  CopyOptions options = job.options;
  options.chunk = std::min(options.chunk == 0 ? kSmallFile : options.chunk, kSmallFile);
  auto copied = copy_large_files(context, options, *rest, job.resumed, job.entries, Wishes::OfSmall);
  if (!copied) return copied.take_error();
  return std::vector<Entry*>();
}

}  // namespace

Result<> copy_all_files(CopyContext& context, const FilesJob& job) {
  const auto copy_large = [&](const std::vector<Entry*>& files, Wishes wishes) {
    return copy_large_files(context, job.options, files, job.resumed, job.entries, wishes);
  };
  const ThreadRange threads = small_file_threads(job.options);
  if (threads.most == 1 && context.viewer == nullptr) {
    auto all = copy_small(context, job, threads);
    if (!all) return all.take_error();
    all->insert(all->end(), job.large.begin(), job.large.end());
    return copy_large(*all, Wishes::OfAll);
  }
  CopyContext beside = context;  // each run has its own `moved`
  // If no thread can be started the call is deferred, that is, it runs after the large files.
  auto others = std::async(std::launch::async | std::launch::deferred,
                           [&] { return no_throw([&] { return copy_small(beside, job, threads); }); });
  Result<> done = copy_large(job.large, job.small.empty() ? Wishes::OfAll : Wishes::OfLarge);
  auto left = others.get();
  if (!done && done.error().kind != Errc::Cancelled) return done;
  if (!left) return left.take_error();
  return done ? copy_large(*left, Wishes::OfAll) : done;
}

}  // namespace spark::staging
