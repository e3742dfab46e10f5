#include "bench/verdict/verdict.hpp"

#include <array>
#include <limits>

#include "base/text.hpp"

namespace spark::bench {
namespace {

// What the job's reading is most like: whole small files, or large ones from end to end.
std::string judging_scenario(const Record& record) {
  if (has_small_files(record.asked) && find_scenario_record(record, "smallfiles") != nullptr) {
    return "smallfiles";
  }
  for (const char* id : {"shards", "samples", "smallfiles"}) {
    if (find_scenario_record(record, id) != nullptr) return id;
  }
  return {};
}

class Judge {
 public:
  explicit Judge(const Record& record) : record_(record) {}

  Verdict run() {
    ask();
    verdict_.judged_by = judging_scenario(record_);
    bool is_possible = !verdict_.judged_by.empty();
    if (is_possible) {
      is_possible = look_at_local();
      for (const PathRecord& path : record_.paths) {
        if (path.name != verdict_.local) look_at(path);
      }
    } else {
      missing_.emplace_back("no scenario that a job's reading could be judged by was measured (shards)");
    }
    add_memory_note();
    verdict_.decision = decide(verdict_.question, verdict_.sources, verdict_.local_read);
    Decision& decision = verdict_.decision;
    if (record_.interrupted) missing_.emplace_back("the run was interrupted");
    if (record_.rate_limit > 0)
      missing_.emplace_back("the run was held to " + limit_words() + " (--rate-limit)");
    if (is_possible && verdict_.sources.empty())
      missing_.emplace_back("no path to stage from has valid results");
    if (!missing_.empty()) decision.advice = Advice::NotDecided;
    decision.not_decided_because = missing_;
    return std::move(verdict_);
  }

 private:
  void ask() {
    const AskedFor& asked = record_.asked;
    verdict_.dataset_assumed = asked.dataset_bytes == 0;
    verdict_.epochs_assumed = asked.epochs == 0;
    verdict_.question.dataset = verdict_.dataset_assumed ? kAssumedDataset : asked.dataset_bytes;
    verdict_.question.epochs = verdict_.epochs_assumed ? kAssumedEpochs : asked.epochs;
    verdict_.question.demand = asked.demand.bytes_per_second;
    verdict_.demand_words = asked.demand.words;
  }

  std::string limit_words() const { return format_rate(static_cast<double>(record_.rate_limit)); }

  bool look_at_local() {
    if (record_.paths.empty()) return false;
    const PathRecord& local = record_.paths[baseline_of(record_)];
    if (local.storage.kind == PathKind::RemoteBlock || local.storage.kind == PathKind::Nas) {
      missing_.emplace_back("no local path was measured, and staging needs one: give local=PATH");
      return false;
    }
    verdict_.local = local.name;
    // A size that is only assumed can't be refused for want of space.
    verdict_.question.local_free = verdict_.dataset_assumed ? std::numeric_limits<Bytes>::max() : local.free;
    verdict_.local_read = rate_of(local.name, verdict_.judged_by, missing_);
    return true;
  }

  void look_at(const PathRecord& path) {
    std::vector<std::string> why;
    const auto read = rate_of(path.name, verdict_.judged_by, why);
    if (!read) {
      verdict_.notes.push_back(path.name + " is left out: " + join(why, "; "));
      return;
    }
    Source source{path.name, *read, std::nullopt};
    if (!verdict_.local.empty()) source.copy = rate_of(path.name, "stagecopy", why);
    if (!source.copy && !verdict_.local.empty()) {
      verdict_.notes.push_back("staging from " + path.name + " is left out: " + join(why, "; "));
    }
    verdict_.sources.push_back(std::move(source));
  }

  // Bytes per second of at least three valid rounds.
  std::optional<Estimate> rate_of(const std::string& path, const std::string& scenario,
                                  std::vector<std::string>& why) const {
    const Summary summary = summarize(record_, path, scenario);
    auto estimate = estimate_of(summary.rates);
    if (estimate) return estimate;
    const std::string what = "'" + scenario + "' of " + path;
    if (!summary.rates.empty()) {
      why.push_back(
          what + " has " + std::to_string(summary.rates.size()) +
          (summary.rates.size() == 1 ? " valid round, three are needed" : " valid rounds, three are needed"));
    } else if (!summary.reasons.empty()) {
      why.push_back(what + " has no valid result: " + summary.reasons.front());
    } else {
      why.push_back(what + " was not measured");
    }
    return std::nullopt;
  }

  void add_memory_note() {
    const Bytes memory = record_.host.memory;
    if (verdict_.dataset_assumed || memory == 0 || verdict_.question.dataset > memory) return;
    verdict_.notes.push_back(
        "the dataset (" + format_bytes(verdict_.question.dataset) + ") would fit into this host's memory (" +
        format_bytes(memory) +
        "): a loader that reads through the page cache, and a job that leaves it free, get "
        "every epoch after the first from RAM on any path");
  }

  const Record& record_;
  Verdict verdict_;
  std::vector<std::string> missing_;
};

}  // namespace

Verdict verdict_of(const Record& record) {
  return Judge(record).run();
}

}  // namespace spark::bench
