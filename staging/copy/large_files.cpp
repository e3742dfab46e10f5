#include "staging/copy/large_files.hpp"

#include <chrono>

#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/lanes/tuning.hpp"

namespace spark::staging {
namespace {

constexpr Bytes kWorthTrying = 6 * kGiB;  // a run of less would end before all settings were tried

// Given, remembered, or to be found out.
std::vector<Tuning::Setting> settings_for(const CopyOptions& options, const Shape& shape,
                                          const std::string& pair, Bytes bytes) {
  const Tuning::Setting given{shape.lanes, shape.chunk};
  if (options.depth > 0 || options.chunk > 0 || options.threads == 1) return {given};
  if (options.tuning_file.empty() || pair.empty()) return {given};
  if (const auto known = TuningFile(options.tuning_file).find(pair)) return {*known};
  return bytes >= kWorthTrying ? settings_to_try(shape) : std::vector{given};
}

}  // namespace

Result<> copy_large_files(CopyContext& context, const CopyOptions& options, const std::vector<Entry*>& files,
                          const Resumed& resumed, const Entries& entries) {
  if (files.empty()) return {};
  Bytes bytes = 0;
  for (const Entry* entry : files) bytes += entry->size;
  Shape shape = shape_of(options);
  const std::string pair = pair_of(context.source->folder.get(), context.copy->folder.get());
  Tuning tuning(settings_for(options, shape, pair, bytes));
  shape.lanes = tuning.largest().lanes;
  shape.chunk = tuning.largest().chunk;
  PieceLimit limit(std::chrono::steady_clock::now());
  context.moved = [&](Bytes moved) {
    const auto now = std::chrono::steady_clock::now();
    tuning.moved(moved, now);
    limit.moved(moved, now);
  };

  RunPlan plan;
  plan.io = options.io;
  plan.shape = shape;
  plan.tuning = &tuning;
  plan.limit = &limit;
  plan.counters = context.counters;
  plan.files = files.size();
  plan.work_for = [&](std::uint64_t index) {
    const auto begun = resumed.begun.find(index_of(entries, files[index]->path));
    return copy_file(context, *files[index], begun == resumed.begun.end() ? nullptr : &begun->second);
  };
  auto done = run(plan, *context.failed);
  context.moved = nullptr;
  if (const auto found = tuning.found(); done && found) {
    TuningFile(options.tuning_file).remember(pair, *found);
  }
  return done;
}

}  // namespace spark::staging
