// What the names in a job's folder mean: which are checkpoints, at which step, and in which order. The only
// place that knows this, for local checkpoints, published ones, and those of several hosts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "staging/checkpoints/completeness.hpp"

namespace spark::staging {

// The step in a checkpoint's name: step-100, checkpoint-100, global_step100, iter_0000100, epoch=1-step=100,
// 100, model_0000100.pth. Lightning's "-v1" after a name that was taken is no step, nor is a date, nor a
// number that is only part of a model's name. Without a step, an epoch counts.
std::optional<std::uint64_t> step_of(std::string_view name);

// Where a checkpoint is in the order of its folder: by step; by the time of its proof only among those with
// one step, and among those without. All that have a step are above those that have none.
struct Standing {
  std::optional<std::uint64_t> step;
  std::int64_t proof_ns = 0;
  std::string_view name;
  auto operator<=>(const Standing&) const = default;
};

template <class Checkpoint>
Standing standing_of(const Checkpoint& one) {
  return {step_of(one.name), one.mtime_ns, one.name};
}
// The highest first.
template <class Checkpoint>
bool is_above(const Checkpoint& one, const Checkpoint& other) {
  return standing_of(one) > standing_of(other);
}

// The iteration of a checkpoint of Megatron-LM, which finds it by a file beside it (kMegatronTracker); none
// if the name has another form.
std::optional<std::uint64_t> megatron_iteration(std::string_view name);
inline constexpr char kMegatronTracker[] = "latest_checkpointed_iteration.txt";

enum class EntryKind {
  Checkpoint,
  Alias,      // another name of the newest or the best one: last.ckpt; a checkpoint if no other has a step
  Temporary,  // a framework is still writing it
  Other,      // never a checkpoint: logs, settings, scripts, pointers, reports
};
EntryKind kind_of(std::string_view name, bool is_folder, Completeness::Rule rule);

// The file beside a checkpoint that exists while NeMo writes it.
std::string unfinished_mark(std::string_view name);

}  // namespace spark::staging
