// A record's answer: stage first, or train from the network. Uses valid cells only, and reports missing data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/record/record.hpp"
#include "bench/verdict/decision.hpp"

namespace spark::bench {

// Used if the user gives no size. The break-even does not depend on the dataset's size.
inline constexpr Bytes kAssumedDataset = 1'000'000'000'000;
inline constexpr unsigned kAssumedEpochs = 30;

// Loading a whole model from a path in one way.
struct LoadTime {
  std::string path, scenario;
  Estimate seconds;
  Rate rate;
  std::optional<double> kept;  // by the page cache, a share of the bytes; no value: unknown
};
// Loading from the local drive instead of from another path, in the quickest way of each.
struct StagedLoad {
  std::string path;
  Difference difference = Difference::TooFewRounds;  // of the time from the local drive by the path's
  double less = 0;                                   // seconds that a load takes less if staged
};
struct Loading {
  Bytes model = 0;                 // its size
  bool fits_memory = true;         // the host's
  Bytes loaded = 0;                // by each measurement
  std::vector<LoadTime> times;     // quickest first
  std::vector<StagedLoad> staged;  // for each path beside the local one
  bool tells_no_times = false;     // they are those of a limit, or of hosts that did not load at once
  const LoadTime* quickest(const std::string& path) const;  // null: no valid result
};

// Writing a checkpoint to a path.
struct CheckpointTime {
  std::string path;
  Estimate seconds;
  Difference local_by_this = Difference::TooFewRounds;  // of the local path's time by this one
};
struct Checkpoints {
  Bytes bytes = 0;                    // of one; 0: not asked
  std::vector<CheckpointTime> times;  // of each path that may be written, local first
  bool has_local = false;             // the first of them is of the path to stage to
  std::vector<std::string> lacks;     // why there are no times
};

struct Verdict {
  Question question;
  bool dataset_assumed = false, epochs_assumed = false, files_assumed = false;
  unsigned nodes = 1;              // nodes that share the target's rate
  std::vector<std::string> hosts;  // hosts that measured at the same time; empty: only this one
  std::string demand_words;
  std::string judged_by;  // the scenario of the rates used
  std::string local;      // the path to stage to; empty: none was measured
  std::optional<Rate> local_read;
  std::vector<Source> sources;
  // False: the rates are those of a limit, of hosts that did not read at once, or of other work than the
  // job's, so no break-even, no time of an epoch and no fed share follows from them.
  bool rates_tell = true;
  Decision decision;  // its not_decided_because names the missing data
  Checkpoints checkpoints;
  std::optional<Loading> loading;     // asked instead of staging for training; none of the above then
  std::vector<std::string> cautions;  // reasons to doubt the answer, shown right behind it
  std::vector<std::string> notes;     // further remarks: a path that was left out and why, memory
};

// "whole files of 20.1 kB on average"
std::string reading_words(const AskedFor& asked);

Verdict verdict_of(const Record& record);

// The answer first, then its reasons, each as a sentence.
std::vector<std::string> sentences_of(const Verdict& verdict);
std::vector<std::string> answers_of(
    const Verdict& verdict);  // the first of them: the answers, and the cautions

json::object to_json(const Verdict& verdict);

}  // namespace spark::bench
