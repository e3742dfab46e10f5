// The step in a checkpoint's name, and what it has in common with the others of its series.
#include <array>

#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/checkpoints/name_parts.hpp"

namespace spark::staging {
namespace name_parts {
namespace {

// What torch.save, Lightning, safetensors, Keras, Flax and NeMo 1 call a checkpoint that is one file.
constexpr std::array<std::string_view, 14> kFileEnds = {".pt",   ".pth",   ".ckpt", ".safetensors", ".bin",
                                                        ".tar",  ".pkl",   ".npz",  ".msgpack",     ".h5",
                                                        ".hdf5", ".keras", ".nemo", ".zip"};

}  // namespace

std::string_view without_end(std::string_view name) {
  for (const std::string_view end : kFileEnds) {
    if (name.size() > end.size() && name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

std::size_t date_in(std::string_view name) {
  constexpr std::array<std::string_view, 3> kForms = {"dddddddd_dddddd", "dddddddd-dddddd", "dddd-dd-dd"};
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_one = std::ranges::any_of(kForms, [&](std::string_view form) {
      return std::ranges::equal(form, name.substr(at, form.size()),
                                [](char f, char c) { return f == 'd' ? is_digit(c) : f == c; });
    });
    if (is_one) return at;
  }
  return std::string_view::npos;
}

}  // namespace name_parts

namespace {

using namespace name_parts;

// Without Lightning's "-v1" (ModelCheckpoint.STARTING_VERSION).
std::string_view without_version(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && is_digit(name[at - 1])) --at;
  const bool is_version = at < name.size() && at >= 2 && name.substr(at - 2, 2) == "-v";
  return is_version ? name.substr(0, at - 2) : name;
}

// The digits of a number in a name.
struct Digits {
  std::size_t begin = 0, end = 0;
};

// The number after this word, whatever separates them: "step=100", "step_100", "step100".
std::optional<Digits> number_after(std::string_view name, std::string_view word) {
  for (std::size_t at = name.rfind(word); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : name.rfind(word, at - 1)) {
    if (at > 0 && is_letter(name[at - 1])) continue;
    std::size_t digits = at + word.size();
    while (digits < name.size() && !is_digit(name[digits]) && !is_letter(name[digits])) ++digits;
    std::size_t end = digits;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > digits) return Digits{digits, end};
  }
  return std::nullopt;
}

// The same, for words that also come before a size: "ckpt_7B", "gemma-3-it-4b", "batch64_epoch_100" have no
// such number.
std::optional<Digits> count_after(std::string_view name, std::string_view word) {
  const auto number = number_after(name, word);
  const bool is_size = number && number->end < name.size() && is_letter(name[number->end]);
  return is_size && name[number->end] != 'k' ? std::nullopt : number;
}

// Stable-Baselines3, CheckpointCallback._checkpoint_path: "PREFIX_100_steps.zip".
std::optional<Digits> number_before(std::string_view name, Texts words) {
  for (const std::string_view word : words) {
    const std::size_t at = name.rfind(word);
    if (at == std::string_view::npos || at < 2 || (name[at - 1] != '_' && name[at - 1] != '-')) continue;
    if (at + word.size() < name.size() && is_letter(name[at + word.size()])) continue;
    std::size_t begin = at - 1;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    if (begin < at - 1) return Digits{begin, at - 1};
  }
  return std::nullopt;
}

// The letters before the number that begins at `end`, whatever separates them.
std::string_view word_before(std::string_view name, std::size_t end) {
  while (end > 0 && !is_digit(name[end - 1]) && !is_letter(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_letter(name[begin - 1])) --begin;
  return name.substr(begin, end - begin);
}

// The number that begins there is of a part of the data or of the job, and no step: nnU-Net's fold_0.
bool is_number_of_part(std::string_view name, std::size_t at) {
  return is_any(word_before(name, at),
                {"fold", "rank", "shard", "part", "split", "chunk", "seed", "attempt", "trial", "run",
                 "worker", "node", "gpu", "replica", "version", "phase", "stage", "task"});
}

constexpr std::array<std::string_view, 5> kStepWords = {"step", "steps", "iter", "iteration", "it"};
constexpr std::array<std::string_view, 2> kBatchWords = {"batch", "ba"};
constexpr std::array<std::string_view, 4> kEpochWords = {"checkpoint", "ckpt", "epoch", "ep"};

bool is_word_of(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_setting(std::string_view word) {
  return is_any(word, {"lr", "rate", "wd", "decay", "bs", "size", "dim", "layers", "heads", "hidden",
                       "dropout", "alpha", "beta", "gamma", "temperature"});
}

// Lightning: "{name}={value}" of any metric, as "val_acc1=0.51", "recall@10=0.7".
bool is_value_of_metric(std::string_view before) {
  if (!ends_with_any(before, {"=", "=-"})) return false;
  const std::string_view name = before.substr(0, before.rfind('='));
  const std::size_t letter = name.find_last_of("abcdefghijklmnopqrstuvwxyz");
  return letter != std::string_view::npos && !is_setting(word_before(name, letter + 1));
}

// What the number that begins there counts or measures changes while a job runs: "tokens4B", "val_loss=0.21".
// Any other number may tell two jobs apart: a size ("7B"), a learning rate, a date.
bool is_number_of_progress(std::string_view name, Digits number, const std::optional<Digits>& step) {
  const std::string_view word = word_before(name, number.begin), rest = name.substr(number.end);
  if (is_any(word, {"tokens", "samples", "consumed"})) return true;
  if (!rest.empty() && is_letter(rest.front()) && rest.front() != 'e' && rest.front() != 'k') return false;
  if (is_word_of(kStepWords, word) || is_word_of(kEpochWords, word)) return true;
  if (is_any(word, {"loss", "acc", "accuracy", "val", "score", "metric", "best"})) return true;
  if (is_value_of_metric(name.substr(0, number.begin))) return true;
  // A decimal after the step: "epoch_10_psnr_32.5.pth".
  const bool is_decimal = rest.size() > 1 && rest[0] == '.' && is_digit(rest[1]);
  return is_decimal && step && step->end <= number.begin && !word.empty() && !is_setting(word);
}

// `lowered`: a whole name.
std::optional<Digits> step_in(std::string_view lowered) {
  const std::string_view name = without_version(without_end(lowered));
  if (are_digits(name)) return Digits{0, name.size()};
  for (const std::string_view word : kStepWords) {
    const auto number = word == "it" ? count_after(name, word) : number_after(name, word);
    if (number) return number;
  }
  if (const auto number = number_before(name, {"steps", "step", "iters", "iterations", "iter"}))
    return number;
  std::optional<Digits> epoch;
  for (const std::string_view word : kEpochWords) {
    if (!epoch) epoch = count_after(name, word);
  }
  // Composer: "ep5-ba1000". Before an epoch it is the size of the batches.
  for (const std::string_view word : kBatchWords) {
    const auto number = count_after(name, word);
    if (number && (!epoch || epoch->begin < number->begin)) return number;
  }
  if (has_date(name)) return std::nullopt;
  if (epoch) return epoch;
  std::size_t at = name.size();
  while (at > 0 && is_digit(name[at - 1])) --at;
  if (is_number_of_part(name, at)) return std::nullopt;
  // guided-diffusion: model000100.pt; not a folder with a date in its name.
  const bool is_counter = without_end(lowered) != lowered && at > 0 && is_letter(name[at - 1]) &&
                          (name.size() - at == 6 || name.size() - at == 7);
  const bool is_last = at < name.size() && at > 0 && !is_letter(name[at - 1]) && name[at - 1] != '.';
  return is_last || is_counter ? std::optional(Digits{at, name.size()}) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> step_of(std::string_view name) {
  const auto step = step_in(lower(name));
  return step ? std::optional(last_number_in(name.substr(0, step->end))) : std::nullopt;
}

std::string save_of(std::string_view name) {
  const std::string_view base = without_end(name);
  return std::string(without_version(base)).append(name.substr(base.size()));
}

std::string form_of(std::string_view name) {
  const std::string whole = save_of(name), lowered = lower(whole);
  const auto step = step_in(lowered);
  const bool is_epoch = step && is_word_of(kEpochWords, word_before(lowered, step->begin));
  const std::size_t date = step ? date_in(lowered) : std::string::npos;
  bool has_form = is_alias(lowered) || step, varies = false;
  std::string form;
  for (std::size_t at = 0, end = 0; at < whole.size();) {
    const std::string_view between = std::string_view(lowered).substr(end, at - end);
    std::size_t next = at;
    while (next < whole.size() && is_digit(whole[next])) ++next;
    if (next == at) {
      form += whole[at++];
      continue;
    }
    // "0.21", "1e-05".
    const bool is_rest = varies && is_any(between, {".", "e", "e-", "e+"});
    // fairseq: checkpoint_EPOCH_UPDATES.pt.
    const bool is_finer = varies && is_epoch && is_any(between, {"_", "-"});
    // Of the checkpoint, not of the job.
    const bool is_date = step && step->end <= date && date <= at;
    const bool is_part = is_number_of_part(lowered, at), is_step = step && step->begin == at;
    varies = is_step || is_rest ||
             (!is_part && (is_finer || is_date || is_number_of_progress(lowered, {at, next}, step)));
    if (is_rest) form.resize(form.size() - between.size());
    if (varies && form.ends_with("=-")) form.pop_back();
    if (!is_rest) form += varies ? "#" : whole.substr(at, next - at);
    has_form = has_form || is_part;
    at = end = next;
  }
  return has_form ? form : "";
}

}  // namespace spark::staging
