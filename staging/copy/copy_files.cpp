#include "staging/copy/copy_files.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <unordered_map>

#include "base/threads.hpp"
#include "staging/copy/copy_file.hpp"
#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/transfer/left_files.hpp"
#include "staging/copy/transfer/small_files.hpp"
#include "staging/copy/transfer/viewer.hpp"

namespace spark::staging {
namespace {

// Of which files a run takes the wishes of readers (see Viewer::take_wanted): nothing else copies those.
enum class Wishes { OfLarge, OfSmall, OfAll };

// Through the lanes, with the number and size of requests that shape_of() chooses.
Result<> copy_large_files(CopyContext& context, const CopyOptions& options, const std::vector<Entry*>& files,
                          const Resumed& resumed, const Entries& entries, Wishes wishes) {
  if (files.empty()) return {};
  PieceLimit limit(std::chrono::steady_clock::now());
  context.moved = [&](Bytes moved) { limit.moved(moved, std::chrono::steady_clock::now()); };

  RunPlan plan;
  plan.io = options.io;
  plan.shape = shape_of(options);
  plan.limit = &limit;
  plan.counters = context.counters;
  plan.files = files.size();
  plan.work_for = [&](std::uint64_t index) { return work_for(context, *files[index], resumed, entries); };
  std::unordered_map<const Entry*, std::uint64_t> numbers;
  for (std::uint64_t i = 0; context.viewer != nullptr && i < files.size(); ++i) numbers[files[i]] = i;
  const auto wanted_of = [&](bool is_small) -> std::optional<WantedUnit> {
    while (const auto wanted = context.viewer->take_wanted(is_small)) {
      const auto number = numbers.find(wanted->entry);
      if (number != numbers.end()) return WantedUnit{number->second, wanted->unit};
    }
    return std::nullopt;
  };
  if (context.viewer != nullptr)
    plan.wanted = [&] {
      auto wanted = wishes == Wishes::OfSmall ? std::nullopt : wanted_of(false);
      return wanted || wishes == Wishes::OfLarge ? wanted : wanted_of(true);
    };
  auto done = run(plan, *context.end);
  context.moved = nullptr;
  return done;
}

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

std::unique_ptr<FileWork> work_for(const CopyContext& context, Entry& entry, const Resumed& resumed,
                                   const Entries& entries) {
  const auto begun = resumed.begun.find(index_of(entries, entry.path));
  return copy_file(context, entry, begun == resumed.begun.end() ? nullptr : &begun->second);
}

Result<> copy_files(CopyContext& context, const FilesJob& job) {
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
  // If no thread can be started the call is deferred, that is, it runs when it is waited for.
  auto others = std::async(std::launch::async | std::launch::deferred, [&] {
    auto left = no_throw([&] { return copy_small(beside, job, threads); });
    if (!left) beside.end->fail();
    return left;
  });
  // The run of the large files takes no wishes for small ones, and those are sooner done.
  const bool is_deferred = others.wait_for(std::chrono::seconds(0)) == std::future_status::deferred;
  if (is_deferred && context.viewer != nullptr) others.wait();
  Result<> done =
      no_throw([&] { return copy_large(job.large, job.small.empty() ? Wishes::OfAll : Wishes::OfLarge); });
  if (!done) {
    context.moved = nullptr;  // of a run that threw
    context.end->fail();
  }
  auto left = others.get();
  if (!done && done.error().kind != Errc::Cancelled) return done;
  if (!left) return left.take_error();
  return done ? copy_large(*left, Wishes::OfAll) : done;
}

}  // namespace spark::staging
