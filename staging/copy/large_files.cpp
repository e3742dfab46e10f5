#include "staging/copy/large_files.hpp"

#include <chrono>

#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/shape.hpp"

namespace spark::staging {

Result<> copy_large_files(CopyContext& context, const CopyOptions& options, const std::vector<Entry*>& files,
                          const Resumed& resumed, const Entries& entries) {
  if (files.empty()) return {};
  PieceLimit limit(std::chrono::steady_clock::now());
  context.moved = [&](Bytes moved) { limit.moved(moved, std::chrono::steady_clock::now()); };

  RunPlan plan;
  plan.io = options.io;
  plan.shape = shape_of(options);
  plan.limit = &limit;
  plan.counters = context.counters;
  plan.files = files.size();
  plan.work_for = [&](std::uint64_t index) {
    const auto begun = resumed.begun.find(index_of(entries, files[index]->path));
    return copy_file(context, *files[index], begun == resumed.begun.end() ? nullptr : &begun->second);
  };
  auto done = run(plan, *context.end);
  context.moved = nullptr;
  return done;
}

}  // namespace spark::staging
