#include "staging/copy/large_files.hpp"

#include <chrono>
#include <unordered_map>

#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/copy/transfer/viewer.hpp"

namespace spark::staging {

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

std::unique_ptr<FileWork> work_for(const CopyContext& context, Entry& entry, const Resumed& resumed,
                                   const Entries& entries) {
  const auto begun = resumed.begun.find(index_of(entries, entry.path));
  return copy_file(context, entry, begun == resumed.begun.end() ? nullptr : &begun->second);
}

}  // namespace spark::staging
