#include "staging/checkpoints/checkpoint_name.hpp"

#include "base/text.hpp"
#include "staging/checkpoints/name_parts.hpp"

namespace spark::staging {
namespace {

using namespace name_parts;

constexpr std::string_view kUnfinished = "-unfinished";

// Temporary names of the frameworks, each from its source:
//   "tmp-checkpoint-N"            transformers 4.36-4.38, Trainer._save_checkpoint
//   "NAME.orbax-checkpoint-tmp-…" orbax, checkpoint/_src/path/atomicity.py, TMP_DIR_SUFFIX
//   "stepN-tmp"                   OLMo, olmo/checkpoint.py; OLMo-core, train/checkpoint.py
//   "NAME-unfinished"             NeMo, UNFINISHED_CHECKPOINT_SUFFIX (a file beside the folder NAME)
//   ".NAME", "NAME.tmp" …         torch.save and rename, huggingface_hub ("….incomplete")
bool is_temporary(std::string_view name) {
  return begins_with_any(name, {".", "tmp-", "tmp_", "tmp."}) ||
         ends_with_any(name, {".tmp", "-tmp", "_tmp", ".incomplete", ".partial", ".part", kUnfinished}) ||
         name.find(".orbax-checkpoint-tmp") != std::string_view::npos;
}

// What trainers put beside their checkpoints.
bool is_other_folder(const std::string& name) {
  return begins_with_any(name, {"version_", "events.out", "eval", "tokenizer", "samples", "log", "export",
                                "tensorboard", "wandb", "profil"}) ||
         is_any(name,
                {"runs",       "tb",      "lightning_logs", "mlruns",  "csv_logs", "vis_data", "traces",
                 "code",       "src",     "scripts",        "config",  "configs",  "conf",     "hydra",
                 "results",    "metrics", "plots",          "figures", "images",   "videos",   "cache",
                 "data",       "dataset", "datasets",       "debug",   "swanlab",  "aim",      "inference",
                 "__pycache__"});
}

// Parts of a checkpoint that lie in the folder itself, when a trainer saves its final model there; not
// optimizer_100.pt beside model_100.pt.
bool is_part(const std::string& name) {
  const bool is_named_so =
      begins_with_any(name, {"training_args", "optimizer", "scheduler", "rng_state", "tokenizer", "scaler"});
  return (is_named_so && !step_of(name)) || name.find("-of-") != std::string::npos;
}

bool is_checkpoint_file(const std::string& name) {
  if (is_part(name)) return false;
  if (without_end(name) != name) return true;
  return name.find('.') == std::string::npos && step_of(name).has_value();
}

}  // namespace

// nemo/lightning/pytorch/callbacks/model_checkpoint.py, format_checkpoint_unfinished_marker_path.
std::string unfinished_mark(std::string_view name) {
  for (const std::string_view end : {".ckpt", "-EMA"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  return std::string(name).append(kUnfinished);
}

bool is_lasting(std::string_view name) {
  return name == ".metadata" || (!is_temporary(name) && !name.ends_with(".lock"));
}

bool may_be_above(std::string_view name, std::string_view other) {
  const auto step = step_of(name), its_step = step_of(other);
  return name != other && (!its_step || step > its_step || (!step && is_name_of_newest(name)));
}

bool is_name_of_newest(std::string_view name) {
  return begins_with_any(lower(name), {"last", "latest"});
}

// megatron/training/checkpointing.py: 'iter_{:07d}', get_checkpoint_tracker_filename.
std::optional<std::uint64_t> megatron_iteration(std::string_view name) {
  constexpr std::string_view kBegin = "iter_";
  const bool is_one =
      name.starts_with(kBegin) && name.size() >= kBegin.size() + 7 && are_digits(name.substr(kBegin.size()));
  return is_one ? step_of(name) : std::nullopt;
}

EntryKind kind_of(std::string_view name, bool is_folder, Completeness::Rule rule) {
  using Rule = Completeness::Rule;
  if (is_temporary(name)) return EntryKind::Temporary;
  const std::string lowered = lower(name);
  const bool is_one_file = rule == Rule::Rename && !is_folder;
  if (rule == Rule::HuggingFace) {  // transformers, PREFIX_CHECKPOINT_DIR; its rotation takes the same names
    constexpr std::string_view kBegin = "checkpoint-";
    const bool is_one = is_folder && name.starts_with(kBegin) && are_digits(name.substr(kBegin.size()));
    return is_one ? EntryKind::Checkpoint : EntryKind::Other;
  }
  if (!is_folder && (!is_one_file || !is_checkpoint_file(lowered))) return EntryKind::Other;
  if (lowered.ends_with("_universal")) return EntryKind::Other;  // DeepSpeed: converted from another one
  if (is_folder &&
      (is_other_folder(lowered) || (has_date(lowered) && std::ranges::none_of(lowered, is_letter))))
    return EntryKind::Unlikely;
  // Lightning's "last-{epoch}-{step}" has a step of its own.
  const bool has_own_step = is_name_of_newest(name) && step_of(name);
  return is_alias(lowered) && !has_own_step ? EntryKind::Alias : EntryKind::Checkpoint;
}

}  // namespace spark::staging
