#include "bench/verdict/verdict.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.hpp"
#include "bench/record/overlap.hpp"
#include "bench/record/words.hpp"
#include "bench/verdict/evidence.hpp"
#include "bench/verdict/loading.hpp"

namespace spark::bench {
namespace {

constexpr double kFarFrom = 2;  // a mean file size that differs by more is of other work

bool is_far_from(Bytes mean, Bytes other) {
  const auto one = static_cast<double>(mean), two = static_cast<double>(other);
  return one > kFarFrom * two || two > kFarFrom * one;
}

class Judge {
 public:
  explicit Judge(const Record& record) : record_(record) {}

  Verdict run() {
    ask();
    if (choose_scenario()) {
      if (find_local()) {
        for (const PathRecord& path : record_.paths) {
          if (path.name != verdict_.local) look_at(path);
        }
      }
      if (verdict_.sources.empty()) missing_.emplace_back("no path to stage from has valid results");
    }
    time_checkpoints();
    add_cautions();
    add_memory_note();
    for (std::string& note : target_notes(record_)) verdict_.notes.push_back(std::move(note));
    verdict_.rates_tell = verdict_.rates_tell && record_.rate_limit == 0;
    verdict_.decision = decide(verdict_.question, verdict_.sources, verdict_.local_read);
    if (!verdict_.rates_tell) forget_times();
    add_missing();
    return std::move(verdict_);
  }

 private:
  void ask() {
    const AskedFor& asked = record_.asked;
    Question& question = verdict_.question;
    verdict_.dataset_assumed = asked.dataset_bytes == 0;
    verdict_.epochs_assumed = asked.epochs == 0;
    verdict_.files_assumed = mean_dataset_file(asked) == 0 && asked.demand.order == ReadOrder::Unknown;
    question.dataset = verdict_.dataset_assumed ? kAssumedDataset : asked.dataset_bytes;
    question.epochs = verdict_.epochs_assumed ? kAssumedEpochs : asked.epochs;
    question.demand = asked.demand.bytes_per_second;
    question.is_staged = asked.is_staged;
    verdict_.demand_words = asked.demand.words;
    verdict_.hosts = record_.hosts;
    verdict_.nodes = nodes_of(record_);
  }

  bool choose_scenario() {
    const std::vector<std::string> fitting = fitting_scenarios(record_.asked);
    for (const std::string& id : fitting) {
      if (find_scenario_record(record_, id) == nullptr) continue;
      verdict_.judged_by = id;
      return true;
    }
    missing_.push_back("'" + fitting.front() +
                       "' was not measured, the scenario that reads as this job does (" +
                       reading_words(record_.asked) + "): measure again with --scenario " + fitting.front() +
                       " --scenario stagecopy");
    return false;
  }

  bool find_local() {
    if (record_.paths.empty()) return false;
    const PathRecord& local = record_.paths[baseline_of(record_)];
    if (is_remote(local.storage.kind)) {
      missing_.emplace_back("no local path was measured, and staging needs one: give local=PATH");
      return false;
    }
    verdict_.local = local.name;
    verdict_.question.local_room = room_on(local);
    verdict_.local_read = measured_rate(record_, local, verdict_.judged_by, 1, missing_);
    check_small_files(local);
    return true;
  }

  std::string sizes_words(Bytes measured) const {
    return "files of " + format_bytes(measured) + " on average, those of the dataset have " +
           format_bytes(mean_dataset_file(record_.asked)) + ": measure again with --dataset NAME";
  }

  // Every path that is compared read files of the local path's sizes.
  void check_small_files(const PathRecord& local) {
    const Bytes measured = mean_small_file(local);
    if (verdict_.judged_by != "smallfiles" || measured == 0) return;
    if (is_far_from(measured, mean_dataset_file(record_.asked)))
      doubt("'smallfiles' read " + sizes_words(measured));
  }

  // Without a known size of the dataset's files, any copy will do.
  void check_copied_files(const PathRecord& path) {
    const Bytes copied = mean_copied_file(record_, path.name);
    if (copied == 0 || mean_dataset_file(record_.asked) == 0) return;
    const bool is_alike = (copied < kMiB) == has_small_files(record_.asked);
    if (!is_alike && is_far_from(copied, mean_dataset_file(record_.asked)))
      doubt("'stagecopy' of " + path.name + " copied " + sizes_words(copied));
  }

  // The space that the cache reported, otherwise the free space. A size that is only assumed always fits.
  Bytes room_on(const PathRecord& local) const {
    if (verdict_.dataset_assumed) return std::numeric_limits<Bytes>::max();
    return record_.asked.cache_room > 0 ? record_.asked.cache_room : local.free;
  }

  void look_at(const PathRecord& path) {
    std::vector<std::string> why;
    auto read = measured_rate(record_, path, verdict_.judged_by, sharers_of(record_, path), why);
    if (read && !does_same_work(path, why)) read.reset();
    if (!read) {
      verdict_.notes.push_back(path.name + " is left out: " + join(why, "; "));
      return;
    }
    Source source{path.name, std::move(*read), std::nullopt};
    const bool is_to_copy = !verdict_.local.empty() && !verdict_.question.is_staged;
    if (is_to_copy) source.copy = copy_of(path, why);
    if (source.copy) check_copied_files(path);
    check_at_once(path, source.copy.has_value());
    if (!source.copy && is_to_copy) {
      verdict_.notes.push_back("staging from " + path.name + " is left out: " + join(why, "; "));
    }
    verdict_.sources.push_back(std::move(source));
  }

  // Rates of hosts that did not compete for the target are higher than those of hosts that do.
  void check_at_once(const PathRecord& path, bool is_copied) {
    for (const ScenarioOverlap& overlap : path.at_once) {
      const bool counts =
          overlap.scenario == verdict_.judged_by || (is_copied && overlap.scenario == "stagecopy");
      if (!counts || overlap.share >= kEnoughOverlap) continue;
      doubt(apart_words(path.name, overlap) +
            ": start them together (--with HOST), with a larger --size and a longer --runtime");
    }
  }

  // The rates are not those of the job.
  void doubt(std::string why) {
    missing_.push_back(std::move(why));
    verdict_.rates_tell = false;
  }

  void forget_times() {
    Decision& decision = verdict_.decision;
    decision.ways.clear();
    decision.staged.reset();
    decision.direct.reset();
    decision.meanwhile.reset();
    decision.difference = {};
    for (BreakEven& even : decision.break_even) even = {};
  }

  // Hosts of a fleet together read each byte once from a source they can't write, and get the rest from each
  // other.
  std::optional<Rate> copy_of(const PathRecord& path, std::vector<std::string>& why) {
    const unsigned together = std::min(record_.asked.fleet_hosts, verdict_.nodes);
    const bool can_exchange = path.storage.kind == PathKind::Nas || !path.read_only_reason.empty();
    if (together < 2 || !is_remote(path.storage.kind) || !can_exchange) {
      return measured_rate(record_, path, "stagecopy", sharers_of(record_, path), why);
    }
    auto rate = measured_rate(record_, path, "stagecopy", sharers_of(record_, path) / together, why);
    if (!rate) return rate;
    const double limit = exchange_limit(path);
    for (auto& [round, value] : rate->rounds) value = std::min(value, limit);
    rate = rate_of_rounds(std::move(rate->rounds));
    verdict_.notes.push_back("staging from " + path.name + " at " + format_rate(rate->typical.value) +
                             " is calculated, not measured: " + std::to_string(together) +
                             " hosts of the fleet read each byte once from the target, and the rest from "
                             "each other");
    return rate;
  }

  // Bytes per second that one host can receive from its peers and write, as far as known.
  double exchange_limit(const PathRecord& path) const {
    double limit = std::numeric_limits<double>::max();
    if (path.storage.nic.bytes_per_second > 0) limit = path.storage.nic.bytes_per_second;
    const std::vector<double> writing = summarize(record_, verdict_.local, "checkpoint").rates;
    return writing.empty() ? limit : std::min(limit, median(writing));
  }

  bool does_same_work(const PathRecord& path, std::vector<std::string>& why) const {
    const PathRecord* local = find_path(record_, verdict_.local);
    if (local == nullptr || is_same_work(path, *local, verdict_.judged_by)) return true;
    why.push_back("its files of " + format_bytes(mean_small_file(path)) +
                  " on average are no match for those of " + format_bytes(mean_small_file(*local)) + " on " +
                  verdict_.local);
    return false;
  }

  void time_checkpoints() {
    Checkpoints& all = verdict_.checkpoints;
    all.bytes = record_.asked.checkpoint;
    if (all.bytes == 0) return;
    if (record_.rate_limit > 0) {
      all.lacks = reasons_against(record_);
      return;
    }
    if (!record_.paths.empty()) time_each_path(record_.paths[baseline_of(record_)]);
    if (!all.times.empty()) {
      all.lacks.clear();
    } else if (all.lacks.empty()) {
      all.lacks = {
          "no path has three valid rounds of 'checkpoint': measure again with --scenario checkpoint"};
    }
  }

  // `first` is the path to stage to, if it is local.
  void time_each_path(const PathRecord& first) {
    std::optional<Rate> local;
    if (!is_remote(first.storage.kind)) local = time_checkpoint(first, std::nullopt);
    verdict_.checkpoints.has_local = local.has_value();
    for (const PathRecord& path : record_.paths) {
      if (is_remote(first.storage.kind) || path.name != first.name) time_checkpoint(path, local);
    }
  }

  std::optional<Rate> time_checkpoint(const PathRecord& path, const std::optional<Rate>& local) {
    std::vector<std::string> why;
    const auto rate = measured_rate(record_, path, "checkpoint", 1, why);
    for (const ScenarioOverlap& overlap : path.at_once) {
      if (overlap.scenario != "checkpoint" || overlap.share >= kEnoughOverlap) continue;
      verdict_.checkpoints.lacks.push_back(apart_words(path.name, overlap));
      verdict_.notes.push_back("the checkpoint to " + path.name +
                               " is left out: " + verdict_.checkpoints.lacks.back());
      return std::nullopt;
    }
    if (!rate) return std::nullopt;
    const auto bytes = static_cast<double>(verdict_.checkpoints.bytes);
    const Estimate& typical = rate->typical;
    CheckpointTime time{path.name,
                        {bytes / typical.value, {bytes / typical.range.high, bytes / typical.range.low}}};
    // The local path's time by this one's is this one's rate by the local path's.
    if (local) time.local_by_this = compare_rounds(local->rounds, rate->rounds).difference;
    verdict_.checkpoints.times.push_back(std::move(time));
    return rate;
  }

  void add_cautions() {
    verdict_.cautions = record_.asked.demand.cautions;
    const PathRecord* local = find_path(record_, verdict_.local);
    if (local != nullptr && local->storage.kind == PathKind::Memory)
      verdict_.cautions.push_back(memory_caution(*local, "a dataset"));
  }

  void add_memory_note() {
    const Bytes memory = record_.host.memory_bytes;
    if (verdict_.dataset_assumed || memory == 0 || verdict_.question.dataset > memory) return;
    verdict_.notes.push_back(
        "the dataset (" + format_bytes(verdict_.question.dataset) + ") would fit into this host's memory (" +
        format_bytes(memory) +
        "): a loader that reads through the page cache, and a job that leaves it free, get "
        "every epoch after the first from RAM on any path");
  }

  void add_missing() {
    Decision& decision = verdict_.decision;
    for (std::string& reason : reasons_against(record_)) missing_.push_back(std::move(reason));
    if (missing_.empty() && decision.staged && decision.difference.difference == Difference::TooFewRounds) {
      missing_.emplace_back("fewer than three rounds have valid results of all that is compared");
    }
    if (missing_.empty() && verdict_.question.demand <= 0 && decision.has_room) {
      missing_.emplace_back(
          "the job's read rate is not known: measure it with `spark-stage bench demand -- COMMAND`, or "
          "give "
          "--demand or --like");
    }
    if (!missing_.empty()) decision.advice = Advice::NotDecided;
    decision.not_decided_because = missing_;
  }

  const Record& record_;
  Verdict verdict_;
  std::vector<std::string> missing_;
};

}  // namespace

Verdict verdict_of(const Record& record) {
  return asks_about_loading(record) ? loading_verdict(record) : Judge(record).run();
}

}  // namespace spark::bench
