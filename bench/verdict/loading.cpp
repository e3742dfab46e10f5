#include "bench/verdict/loading.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"
#include "bench/record/overlap.hpp"
#include "bench/record/words.hpp"
#include "bench/verdict/evidence.hpp"

namespace spark::bench {
namespace {

constexpr double kNone = 0.02;   // of the model: less than that is the noise of a host at work
constexpr double kWhole = 0.95;  // of the model

class LoadingJudge {
 public:
  explicit LoadingJudge(const Record& record) : record_(record) {}

  Verdict run() {
    verdict_.hosts = record_.hosts;
    verdict_.nodes = nodes_of(record_);
    verdict_.dataset_assumed = record_.asked.dataset_bytes == 0;
    loading_.loaded = loaded();
    loading_.tells_no_times = record_.rate_limit > 0;
    loading_.model = verdict_.dataset_assumed ? loading_.loaded : record_.asked.dataset_bytes;
    verdict_.question.dataset = loading_.model;
    for (const PathRecord& path : record_.paths) look_at(path);
    std::ranges::stable_sort(loading_.times, {}, [](const LoadTime& time) { return time.seconds.value; });
    compare_with_local();
    for (std::string& note : target_notes(record_)) verdict_.notes.push_back(std::move(note));
    look_for_room();
    decide();
    verdict_.loading = std::move(loading_);
    return std::move(verdict_);
  }

 private:
  // The bytes of one load; of several hosts the cells have rates alone.
  Bytes loaded() const {
    if (record_.hosts.size() > 1) return record_.size;
    Bytes most = 0;
    for (const Cell& cell : record_.cells) {
      if (is_loading(cell.scenario) && cell.status == CellStatus::Valid) most = std::max(most, cell.bytes);
    }
    return most;
  }

  void look_at(const PathRecord& path) {
    std::vector<std::string> why;
    const std::size_t before = loading_.times.size();
    for (const ScenarioRecord& scenario : record_.scenarios) {
      if (is_loading(scenario.id)) look_at(path, scenario.id, why);
    }
    if (loading_.times.size() > before || why.empty()) return;
    verdict_.notes.push_back(path.name + " is left out: " + why.front());
  }

  void look_at(const PathRecord& path, const std::string& scenario, std::vector<std::string>& why) {
    const auto rate = measured_rate(record_, path, scenario, sharers_of(record_, path), why);
    if (!rate) return;
    const auto model = static_cast<double>(loading_.model);
    const Estimate& typical = rate->typical;
    LoadTime time{path.name,
                  scenario,
                  {model / typical.value, {model / typical.range.high, model / typical.range.low}},
                  *rate,
                  std::nullopt};
    const Summary summary = summarize(record_, path.name, scenario);
    const double bytes = median(summary.rates) * median(summary.seconds);
    if (summary.memory && bytes > 0)
      time.kept = static_cast<double>(summary.memory->cached.value_or(summary.memory->taken())) / bytes;
    loading_.times.push_back(std::move(time));
  }

  void compare_with_local() {
    if (record_.paths.empty()) return;
    const PathRecord& local = record_.paths[baseline_of(record_)];
    if (is_remote(local.storage.kind)) return;
    verdict_.local = local.name;
    if (local.storage.kind == PathKind::Memory) verdict_.cautions.push_back(memory_caution(local, "a model"));
    const LoadTime* staged = loading_.quickest(local.name);
    for (const PathRecord& path : record_.paths) {
      const LoadTime* other = loading_.quickest(path.name);
      if (staged == nullptr || other == nullptr || path.name == local.name) continue;
      // The times of the local path by those of the other one are the rates of the other one by the local's.
      const PairedComparison by_rates = compare_rounds(staged->rate.rounds, other->rate.rounds);
      loading_.staged.push_back(
          {path.name, by_rates.difference, other->seconds.value - staged->seconds.value});
    }
  }

  void look_for_room() {
    const AskedFor& asked = record_.asked;
    const PathRecord* local = find_path(record_, verdict_.local);
    if (local != nullptr && !verdict_.dataset_assumed && !asked.is_staged) {
      const Bytes room = asked.cache_room > 0 ? asked.cache_room : local->free;
      verdict_.decision.has_room =
          static_cast<double>(room) >= kRoomFactor * static_cast<double>(loading_.model);
    }
    loading_.fits_memory = record_.host.memory_bytes == 0 || loading_.model <= record_.host.memory_bytes;
    if (!loading_.fits_memory)
      verdict_.notes.push_back("the model is larger than this host's memory (" +
                               format_bytes(record_.host.memory_bytes) +
                               "): the page cache drops parts of it while others are loaded");
  }

  // By the quickest of the paths that are not staged on.
  void decide() {
    std::vector<std::string>& missing = verdict_.decision.not_decided_because;
    missing = reasons_against(record_);
    for (const PathRecord& path : record_.paths) check_at_once(path);
    const bool is_measured = std::ranges::any_of(
        record_.scenarios, [](const ScenarioRecord& scenario) { return is_loading(scenario.id); });
    if (loading_.times.empty())
      missing.emplace_back(is_measured ? "no path has three valid rounds of loading"
                                       : "loading was not measured: measure with --like model-load");
    if (!missing.empty()) return;
    const auto quickest =
        std::ranges::min_element(loading_.staged, {}, [](const StagedLoad& one) { return one.less; });
    if (quickest == loading_.staged.end()) {
      missing.emplace_back("loading from the local drive and from another path could not both be measured");
    } else {
      verdict_.decision.advice =
          verdict_.decision.has_room ? advice_by(quickest->difference) : Advice::TrainDirectly;
    }
  }

  // Hosts that don't compete for the target load faster.
  void check_at_once(const PathRecord& path) {
    const LoadTime* quickest = loading_.quickest(path.name);
    for (const ScenarioOverlap& overlap : path.at_once) {
      if (quickest == nullptr || overlap.scenario != quickest->scenario || overlap.share >= kEnoughOverlap)
        continue;
      loading_.tells_no_times = true;
      verdict_.decision.not_decided_because.push_back(apart_words(path.name, overlap));
    }
  }

  const Record& record_;
  Verdict verdict_;
  Loading loading_;
};

constexpr std::array kReads = {std::pair{"load-mmap", "mapped"}, std::pair{"load-buffered", "buffered"},
                               std::pair{"load-direct", "direct"}};

std::string way_of(const std::string& scenario) {
  for (const auto& [id, reads] : kReads) {
    if (scenario == id) return std::string(reads) + " reads";
  }
  return scenario;
}

std::string time_from(const LoadTime& time) {
  return "in " + seconds_text(time.seconds.value) + " from " + time.path;
}

std::string answer(const Loading& loading) {
  std::vector<std::string> words, paths;
  for (const LoadTime& time : loading.times) {  // the first of a path is its quickest
    if (std::ranges::find(paths, time.path) != paths.end()) continue;
    paths.push_back(time.path);
    words.push_back(time_from(time) + " by " + way_of(time.scenario) + " (" +
                    format_rate(time.rate.typical.value) + ")");
  }
  return "A model of " + format_bytes(loading.model) + " loads " + join(words, ", ") + ".";
}

// Empty if mapped reads are the quickest anyway.
std::string mapped_text(const Loading& loading) {
  std::vector<std::string> words;
  bool is_slower = false;
  for (const LoadTime& time : loading.times) {
    if (time.scenario != "load-mmap") continue;
    words.push_back(time_from(time));
    is_slower = is_slower || loading.quickest(time.path)->scenario != time.scenario;
  }
  return is_slower ? "By mapped reads, as safetensors loads unless told otherwise, " + join(words, ", ") + "."
                   : "";
}

std::string staged_text(const std::string& local, const StagedLoad& one) {
  switch (one.difference) {
    case Difference::Lower:
      return "Staged on " + local + ", each load takes " + seconds_text(one.less) + " less than from " +
             one.path + "; the time of the copy is not in this.";
    case Difference::Higher:
      return "From " + one.path + ", each load takes " + seconds_text(-one.less) + " less than staged on " +
             local + ".";
    case Difference::NoClearDifference:
      return "Loading from " + one.path + " and from " + local + " shows no clear difference.";
    case Difference::TooFewRounds:
      break;
  }
  return "Too few rounds have results of both " + one.path + " and " + local + ".";
}

// "Mapped and buffered reads leave 16.1 GB in the page cache, so much less free memory, until `spark-stage
// drop`; direct reads leave none."
std::string memory_text(const Loading& loading) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;  // what is left, after which reads
  for (const auto& [scenario, reads] : kReads) {
    std::optional<double> kept;
    for (const LoadTime& time : loading.times) {
      if (time.scenario == scenario && time.kept) kept = std::max(kept.value_or(0), *time.kept);
    }
    if (!kept) continue;
    const double bytes = (*kept > kWhole ? 1 : *kept) * static_cast<double>(loading.model);
    const std::string left = *kept < kNone          ? "none"
                             : !loading.fits_memory ? "as much of it as fits"
                                                    : format_bytes(static_cast<Bytes>(bytes));
    auto kind = std::ranges::find(kinds, left, [](const auto& one) { return one.first; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {left, {}});
    kind->second.emplace_back(reads);
  }
  std::vector<std::string> words;
  for (const auto& [left, reads] : kinds) {
    const bool is_none = left == "none";
    words.push_back(join(reads, " and ") + " reads leave " + left +
                    (words.empty() ? " in the page cache" : "") +
                    (is_none ? "" : ", so much less free memory, until `spark-stage drop`"));
  }
  std::string text = join(words, "; ");
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.empty() ? "" : text + ".";
}

std::string model_text(const Verdict& verdict) {
  const Loading& loading = *verdict.loading;
  std::vector<std::string> words;
  if (verdict.dataset_assumed) {
    words.emplace_back("Assumed: the model is as large as what was loaded (--dataset, --size).");
  } else if (loading.loaded < loading.model / 20 * 19 || loading.loaded / 20 * 19 > loading.model) {
    words.push_back("Calculated from loads of " + format_bytes(loading.loaded) + " (--size).");
  }
  const std::size_t measured = std::max<std::size_t>(1, verdict.hosts.size());
  if (verdict.nodes > measured)
    words.push_back("Assumed: " + std::to_string(verdict.nodes) +
                    " hosts that load at once and share evenly what the target gave " +
                    (measured == 1 ? "this one" : "these " + std::to_string(measured)) + " (--nodes).");
  return join(words, " ");
}

}  // namespace

const LoadTime* Loading::quickest(const std::string& path) const {
  const auto found = std::ranges::find(times, path, &LoadTime::path);
  return found == times.end() ? nullptr : &*found;
}

bool asks_about_loading(const Record& record) {
  const AskedFor& asked = record.asked;
  if (asked.loads_model) return true;
  if (asked.demand.bytes_per_second > 0 || asked.checkpoint > 0) return false;
  return !record.scenarios.empty() &&
         std::ranges::all_of(record.scenarios, [](const ScenarioRecord& one) { return is_loading(one.id); });
}

Verdict loading_verdict(const Record& record) {
  return LoadingJudge(record).run();
}

std::vector<std::string> loading_sentences(const Verdict& verdict) {
  const Loading& loading = *verdict.loading;
  const std::vector<std::string>& missing = verdict.decision.not_decided_because;
  std::vector<std::string> sentences;
  if (loading.times.empty() || loading.tells_no_times) {
    sentences.push_back("Not decided: " + join(missing, "; ") + ".");
    if (const std::string text = memory_text(loading); !text.empty()) sentences.push_back(text);
    return sentences;
  }
  sentences.push_back(answer(loading));
  if (!missing.empty())
    sentences.push_back("Whether to stage it is not decided: " + join(missing, "; ") + ".");
  const bool has_room = verdict.decision.has_room;
  if (!has_room) sentences.push_back("It can't be staged: " + verdict.local + " has not enough space.");
  for (const StagedLoad& one : loading.staged) {
    if (missing.empty() && has_room) sentences.push_back(staged_text(verdict.local, one));
  }
  for (const std::string& text : {mapped_text(loading), memory_text(loading), model_text(verdict)}) {
    if (!text.empty()) sentences.push_back(text);
  }
  return sentences;
}

}  // namespace spark::bench
