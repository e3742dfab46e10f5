#include "staging/checkpoints/completeness.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/checkpoints/distcp.hpp"
#include "staging/checkpoints/name_parts.hpp"
#include "staging/files/times.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;
using name_parts::begins_with_any, name_parts::ends_with_any;

constexpr std::size_t kMostOfAnIndex = 64 << 20;  // bytes

// When the file was last written, in nanoseconds; no value if it is no regular file.
std::optional<std::int64_t> written_at(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return nanoseconds(info.st_mtim);
}

// The first of the names that is not a file of the folder; empty if all exist.
std::string first_missing(const fs::path& folder, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (!written_at(folder / name)) return name;
  }
  return "";
}

// The file that proves that the checkpoint is complete. Its time is read before the times of the data, so
// that a save in between never makes it look newer.
struct Proof {
  std::string shown;  // for messages: "its .metadata"
  std::int64_t written_ns = 0;
};

// The proof is as old as the data on a file system with coarse times.
bool is_newer(const fs::path& data, const Proof& proof) {
  const auto written = written_at(data);
  return written && *written > proof.written_ns;
}

// The first of the names with a file that is newer than the proof; empty if there is none.
std::string first_newer(const fs::path& folder, const std::set<std::string>& names, const Proof& proof) {
  const auto found = std::ranges::find_if(names, [&](auto& name) { return is_newer(folder / name, proof); });
  return found == names.end() ? "" : *found;
}

// The same for all files below the folder with a relative path that `counts` accepts.
std::string first_newer(const fs::path& folder, const std::function<bool(const fs::path&)>& counts,
                        const Proof& proof) {
  std::error_code error;
  fs::recursive_directory_iterator files(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && files != fs::recursive_directory_iterator(); files.increment(error)) {
    const fs::path name = files->path().lexically_relative(folder);
    if (counts(name) && is_newer(files->path(), proof)) return name;
  }
  return "";
}

std::string how_to_send(const fs::path& checkpoint) {
  return "if it is right, send it with `spark-stage stage-out " + printable(checkpoint.native()) +
         " VOLUME:PATH`";
}

Incomplete older_than(const std::string& newer, const fs::path& checkpoint, const Proof& proof) {
  if (newer.empty()) return {};
  return {
      proof.shown + " is older than " + printable(newer) +
          ", as after an interrupted save to the same name, a copy without times, or a clock that was set "
          "back; " +
          how_to_send(checkpoint),
      true};
}

// NeMo 2 has one in its folder "weights" (nemo/lightning/ckpt_utils.py, WEIGHTS_PATH). Megatron Core, which
// writes common.pt first, needs metadata.json too, and writes it last
// (megatron/core/dist_checkpointing/serialization.py, save).
Incomplete why_not_dcp(const fs::path& checkpoint) {
  const fs::path nemo = checkpoint / "weights";
  const fs::path path = written_at(nemo / ".metadata") ? nemo : checkpoint;
  const auto written = written_at(path / ".metadata");
  const auto metadata = read_regular_file(path / ".metadata", kMostOfAnIndex);
  if (!written || !metadata) return {"it has no .metadata yet"};
  if (written_at(path / "common.pt") && !written_at(path / "metadata.json"))
    return {"it has no metadata.json yet"};
  const auto names = data_files_in(*metadata);
  if (names.empty()) return {"its .metadata names no file"};
  const std::string missing = first_missing(path, names);
  if (!missing.empty()) return {"its .metadata names " + missing + ", which is not there"};
  const Proof proof{"its .metadata", *written};
  return older_than(first_newer(path, names, proof), path, proof);
}

// The Trainer writes weights and optimizer, each with all ranks' parts, before trainer_state.json. Older
// versions write rng_state*.pth after it, and callbacks add files of any other name.
bool is_before_trainer_state(const fs::path& file) {
  const std::string name = file.filename();
  if (ends_with_any(name, {".distcp", "_states.pt"})) return true;
  return begins_with_any(name, {"model", "pytorch_model", "adapter_model", "optimizer"}) &&
         ends_with_any(name, {".safetensors", ".bin", ".pt"});
}

// Everything that the Trainer writes beside the weights of a model (transformers, trainer.py).
bool is_weights(const fs::path& file) {
  const std::string name = file.filename();
  if (ends_with_any(name, {".safetensors", ".distcp", "_states.pt"})) return true;
  return !begins_with_any(name,
                          {"training_args", "optimizer", "scheduler", "scaler", "rng_state", "tokenizer"}) &&
         ends_with_any(name, {".bin", ".pt", ".pth"});
}

// A deletion that was interrupted may leave the state alone.
bool has_weights(const fs::path& path) {
  std::error_code error;
  fs::recursive_directory_iterator files(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && files != fs::recursive_directory_iterator(); files.increment(error)) {
    std::error_code none;
    if (is_weights(files->path()) && files->is_regular_file(none) && files->file_size(none) > 0) return true;
  }
  return false;
}

Incomplete why_not_hugging_face(const fs::path& path) {
  const auto written = written_at(path / "trainer_state.json");
  if (!written) return {"it has no trainer_state.json yet"};
  const auto state = read_regular_file(path / "trainer_state.json", kMostOfAnIndex);
  if (!state || !parse_json_object(*state)) return {"its trainer_state.json can't be read yet"};
  if (!has_weights(path)) return {"it has no weights, as after an interrupted deletion"};
  Proof proof{"its trainer_state.json", *written};
  // Value heads: LLaMA-Factory writes the weights again after the state, and then this
  // (llamafactory/train/callbacks.py, FixValueHeadModelCallback).
  for (const char* head : {"value_head.safetensors", "value_head.bin"}) {
    const auto last = written_at(path / head);
    if (last > proof.written_ns) proof = {std::string("its ") + head, *last};
  }
  for (const fs::path& entry : list_folder(path)) {
    const std::string name = entry.filename();
    if (!name.ends_with(".index.json")) continue;
    const auto text = read_regular_file(entry, kMostOfAnIndex);
    const auto weights = text ? weights_named_in(*text) : fail(text.error());
    if (!weights) return {name + " can't be read yet"};
    if (const std::string missing = first_missing(path, *weights); !missing.empty())
      return {name + " names " + printable(missing) + ", which is not there"};
    if (const std::string newer = first_newer(path, *weights, proof); !newer.empty())
      return older_than(newer, path, proof);
  }
  return older_than(first_newer(path, is_before_trainer_state, proof), path, proof);
}

// Its names for the states of the process that also writes `latest`: mp_rank_00_model_states.pt,
// zero_pp_rank_0_mp_rank_00_optim_states.pt, with "bf16_" before it, and the like.
bool is_of_rank_0(const std::string& name) {
  if (name.starts_with("mp_rank_00_")) return true;
  return name.find("zero_pp_rank_0_mp_rank_00_") != std::string::npos;
}

// Rank 0 does not wait for the other ranks before it writes `latest`, so their states may be newer in a
// complete checkpoint. In a save to the same name its own states are among the first to be overwritten. All
// count while it has none, since it has not begun.
// A job that is killed while it saves leaves a checkpoint below the number of the next that it saves, so one
// that `latest` does not name any more counts only if it was complete while `latest` named it. After a power
// cut, and for a moment in each save, it names none.
Incomplete why_not_deep_speed(const fs::path& path, bool was_complete) {
  const auto written = written_at(path.parent_path() / kLatest);
  const auto latest = read_regular_file(path.parent_path() / kLatest, 4096);
  const std::string named(written && latest ? trim(*latest) : "");
  if (named.empty() && !was_complete) return {"there is no file `latest` that names it yet"};
  const std::string name = path.filename();
  if (!named.empty() && name != named && step_of(name) > step_of(named))
    return {"`latest` still names " + printable(named)};
  std::set<std::string> of_rank_0, of_all;
  bool has_model = false;
  for (const fs::path& entry : list_folder(path)) {
    const std::string file = entry.filename();
    if (!file.ends_with("_states.pt")) continue;
    of_all.insert(file);
    has_model = has_model || file.ends_with("model_states.pt");
    if (is_of_rank_0(file)) of_rank_0.insert(file);
  }
  if (!has_model) return {"it has no states of the model"};
  if (name != named && !was_complete)
    return {"`latest` names " + printable(named) +
                ", and this one was not seen complete before, as after an interrupted save; " +
                how_to_send(path),
            true};
  if (name != named) return {};  // whatever the clock says of `latest`
  const Proof proof{"`latest`", *written};
  return older_than(first_newer(path, of_rank_0.empty() ? of_all : of_rank_0, proof), path, proof);
}

Incomplete why_not_marked(const fs::path& path, const std::string& marker) {
  const auto written = written_at(path / marker);
  if (!written) return {"it has no " + printable(marker) + " yet"};
  const Proof proof{"its " + printable(marker), *written};
  const auto is_data = [&](const fs::path& file) { return file != marker; };
  return older_than(first_newer(path, is_data, proof), path, proof);
}

}  // namespace

std::optional<Completeness> completeness_named(std::string_view text) {
  using Rule = Completeness::Rule;
  constexpr std::array<std::pair<std::string_view, Rule>, 5> kRules = {{{"rename", Rule::Rename},
                                                                        {"dcp", Rule::Dcp},
                                                                        {"hf", Rule::HuggingFace},
                                                                        {"deepspeed", Rule::DeepSpeed},
                                                                        {"marker", Rule::Marker}}};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto found =
      std::ranges::find(kRules, text.substr(0, colon), &std::pair<std::string_view, Rule>::first);
  if (found == kRules.end()) return std::nullopt;
  return Completeness{found->second, std::string(text.substr(std::min(colon + 1, text.size())))};
}

std::string best_model_of(const fs::path& checkpoint) {
  const auto text = read_regular_file(checkpoint / "trainer_state.json", kMostOfAnIndex);
  const auto state = text ? parse_json_object(*text) : Result<json::object>(fail(text.error()));
  const auto best = state ? get_string(*state, "best_model_checkpoint") : std::nullopt;
  return best ? fs::path(*best).filename().native() : "";
}

std::vector<std::string> proofs_in(const Completeness& completeness) {
  switch (completeness.rule) {
    case Completeness::Rule::Dcp:
      return {"weights/.metadata", ".metadata"};
    case Completeness::Rule::HuggingFace:
      return {"trainer_state.json"};
    case Completeness::Rule::Marker:
      return {completeness.marker};
    default:
      return {};
  }
}

std::optional<std::int64_t> proved_at(const fs::path& path, const Completeness& completeness) {
  if (completeness.rule == Completeness::Rule::DeepSpeed) return written_at(path.parent_path() / kLatest);
  for (const std::string& name : proofs_in(completeness)) {
    if (const auto written = written_at(path / name)) return written;
  }
  return std::nullopt;
}

Incomplete why_incomplete(const fs::path& path, bool was_complete, const Completeness& completeness) {
  // With the other rules everything that counts is in it. Its index may have megabytes.
  if (was_complete && completeness.rule != Completeness::Rule::DeepSpeed) return {};
  switch (completeness.rule) {
    case Completeness::Rule::Rename:
      return {};
    case Completeness::Rule::Dcp:
      return why_not_dcp(path);
    case Completeness::Rule::HuggingFace:
      return why_not_hugging_face(path);
    case Completeness::Rule::DeepSpeed:
      return why_not_deep_speed(path, was_complete);
    case Completeness::Rule::Marker:
      return why_not_marked(path, completeness.marker);
  }
  return {};
}

}  // namespace spark::staging
