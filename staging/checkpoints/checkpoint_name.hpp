// The meaning of names in a job's folder: which are checkpoints, at which step, and in which order. The only
// place that knows this, for local checkpoints, published ones, and those of several hosts.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "staging/checkpoints/completeness.hpp"

namespace spark::staging {

// The step in a checkpoint's name: step-100, checkpoint-100, global_step100, iter_0000100, epoch=1-step=100,
// 100, model_0000100.pth, model000100.pt. Lightning's "-v1" after a name that was taken is no step, nor is a
// date, the number of a part (fold_1, rank_0), or a number that belongs to a model's name. Without a step, an
// epoch counts.
std::optional<std::uint64_t> step_of(std::string_view name);

// The part that the names of one series of checkpoints have in common, such as "G_#.pth" and "D_#.pth": only
// within it does a higher step make a lower one superfluous. Numbers that change while a job runs are left
// out: the step, the epoch, "loss=0.21". All others may tell two jobs or parts apart: "fold_0_epoch_#.pth",
// "gpt124M_step_#.pt". Names without a step or the number of a part form one series; an alias one each.
std::string form_of(std::string_view name);
// The name without Lightning's version: two such files are one save for `keep`.
std::string save_of(std::string_view name);

// Where a checkpoint is in the order of its folder: by step; by time only among those with one step, and
// among those without. All that have a step are above those that have none.
struct Standing {
  std::optional<std::uint64_t> step;
  std::int64_t time_ns = 0;
  std::string_view name;
  auto operator<=>(const Standing&) const = default;
};

// When it was completed: its folder changes with each file that someone adds to it.
template <class Checkpoint>
std::int64_t time_of(const Checkpoint& one) {
  return one.proof_ns != 0 ? one.proof_ns : one.mtime_ns;
}
template <class Checkpoint>
Standing standing_of(const Checkpoint& one) {
  return {one.newer_than ? one.newer_than : step_of(one.name), time_of(one), one.name};
}
// The highest first.
template <class Checkpoint>
bool is_above(const Checkpoint& one, const Checkpoint& other) {
  return standing_of(one) > standing_of(other);
}

// A file or folder in a checkpoint that belongs to the save, by its name: no temporary file, lock or hidden
// one, which other programs make and delete. The hidden proof of torch.distributed.checkpoint is none of
// these.
bool is_lasting(std::string_view name);

// The iteration of a checkpoint of Megatron-LM, which finds it by a file beside it (kMegatronTracker); none
// if the name has another form.
std::optional<std::uint64_t> megatron_iteration(std::string_view name);
inline constexpr char kMegatronTracker[] = "latest_checkpointed_iteration.txt";

enum class EntryKind {
  Checkpoint,
  Alias,      // another name of the newest or the best one, if that is as new: last.ckpt (add_aliases)
  Unlikely,   // a checkpoint only with a proof of its own: results, logs, 2026-11-27
  Temporary,  // a framework is still writing it
  Other,      // never a checkpoint: settings, scripts, pointers, reports
};
EntryKind kind_of(std::string_view name, bool is_folder, Completeness::Rule rule);

// last.ckpt, latest.pt; not best.ckpt, which may be a copy of an older one.
bool is_name_of_newest(std::string_view name);
// Whether a checkpoint of which the name alone is known may be above that other one (is_above). Every one may
// be if the other has no step: only times tell then.
bool may_be_above(std::string_view name, std::string_view other);

// One that is newer by less may be the same, written once more to a slow drive. In nanoseconds.
template <class Checkpoint>
std::int64_t time_of_a_copy(const Checkpoint& one) {
  constexpr std::int64_t kLeast = 3'000'000'000, kPerByte = 5;
  if constexpr (requires { one.bytes; }) return kLeast + kPerByte * static_cast<std::int64_t>(one.bytes);
  return kLeast;
}

// Adds the aliases that are more than that, and sorts all, the highest first: no other has a step, or this is
// the last one and newer than the highest complete one, which may be the best. Lightning saves last.ckpt at
// each epoch, also if that is none of the best, which alone have a step in their names.
template <class Checkpoint, class IsComplete>
void add_aliases(std::vector<Checkpoint>& all, const std::vector<Checkpoint>& aliases,
                 IsComplete is_complete) {
  for (const bool are_newest : {false, true}) {
    std::ranges::sort(all, is_above<Checkpoint>);
    const auto highest = std::ranges::find_if(all, is_complete);
    const auto step = highest == all.end() ? std::nullopt : step_of(highest->name);
    const std::int64_t time = highest == all.end() ? 0 : time_of(*highest);
    for (const Checkpoint& one : aliases) {
      if (is_name_of_newest(one.name) != are_newest) continue;
      if (step && (!are_newest || time_of(one) <= time + time_of_a_copy(one))) continue;
      all.push_back(one);
      all.back().newer_than = step;
    }
  }
  std::ranges::sort(all, is_above<Checkpoint>);
}

// The file beside a checkpoint that exists while NeMo writes it.
std::string unfinished_mark(std::string_view name);

}  // namespace spark::staging
