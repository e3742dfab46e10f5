// The rules that determine when a checkpoint in a job's folder is complete. Each has a proof, the file that
// the framework writes last (docs/stage-out.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark::staging {

// The pointer to the newest checkpoint beside it: DeepSpeed's own file, or ours.
inline constexpr char kLatest[] = "latest";

struct Completeness {
  enum class Rule {
    Rename,       // it has its final name: the job wrote it under a temporary one
    Dcp,          // torch.distributed.checkpoint: .metadata exists, and every file that it names
    HuggingFace,  // trainer_state.json exists, with weights, and every file that an index of them names
    DeepSpeed,    // the file `latest` beside it names it, or did so at an earlier look
    Marker,       // it contains a file of that name
  };
  Rule rule = Rule::Rename;
  std::string marker{};
};

// As the configuration names it: "rename", "dcp", "hf", "deepspeed", "marker:NAME". None of them: no value.
std::optional<Completeness> completeness_named(std::string_view text);

struct Incomplete {
  std::string why;           // empty means that it is complete
  bool is_by_times = false;  // alone: it may be complete, if a clock was set, or the files were copied
};

// Whether the checkpoint at `path` is complete. `was_complete`: in its present state, at an earlier look. A
// proof that is older than the data proves nothing: a job that saves to the same name again overwrites one
// file after the other, beside the proof of the first save.
Incomplete why_incomplete(const std::filesystem::path& path, bool was_complete,
                          const Completeness& completeness);

// The names that its proof may have in it, the best first. None with `rename`, and with DeepSpeed, whose
// `latest` is beside all of them.
std::vector<std::string> proofs_in(const Completeness& completeness);
// When the file that proves it was written, in nanoseconds; no value without one.
std::optional<std::int64_t> proved_at(const std::filesystem::path& path, const Completeness& completeness);

// The checkpoint that this one names as the best so far (`best_model_checkpoint` of a Hugging Face Trainer);
// empty if it names none.
std::string best_model_of(const std::filesystem::path& checkpoint);

}  // namespace spark::staging
