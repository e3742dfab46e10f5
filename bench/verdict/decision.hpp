// Stage first, or train from the network? Calculates with measured rates and carries the uncertainty of each
// to the end. Pure; docs/bench-method.md explains the formulas.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/record/statistics.hpp"

namespace spark::bench {

// The user's parameters for the decision.
struct Question {
  Bytes dataset = 0;
  double epochs = 0;
  double demand = 0;       // bytes per second that the job consumes; 0: unknown, as fast as data arrives
  Bytes local_room = 0;    // free for the dataset, on the drive to stage to
  bool is_staged = false;  // a copy exists already, so copying takes no time
};

// Bytes per second: the median of the rounds with its interval, and the rounds themselves.
struct Rate {
  Estimate typical;
  ByRound rounds;
};

// No value for fewer than three rounds.
std::optional<Rate> rate_of_rounds(ByRound rounds);

// A path to read the dataset from, or to stage it from.
struct Source {
  std::string name;
  Rate read;
  std::optional<Rate> copy;  // rate of staging from it to the local drive; no value: not measured
};

// Staging needs free space of the dataset's size times this.
inline constexpr double kRoomFactor = 1.05;

// Seconds of one epoch, at the slower of the storage's rate and the job's demand.
double epoch_seconds(Bytes dataset, double rate, double demand);

// The share of the demand that a rate covers, at most 1; 1 without a demand.
double fed_share(double rate, double demand);

// The number of epochs after which the copy has paid off (independent of the dataset's size). No value:
// never, since an epoch from the local drive is not faster.
std::optional<double> break_even(double read, double copy, double local, double demand);

struct BreakEven {
  std::optional<double> epochs;  // at the typical rates
  // Student's 95 % interval over the rounds. Read, copy and local rates of one round belong together. A bound
  // without a value is "never". No range with fewer than three such rounds.
  bool has_range = false;
  std::optional<double> best, worst;
};
BreakEven break_even_of(const Source& source, const Rate& local, double demand);
// Of a copy that exists: 0 epochs, or never.
BreakEven break_even_of_copy(const Source& source, const Rate& local, double demand);

// The first whole epoch after which staging is faster.
double pays_from(double break_even_epochs);

// One way to train, with its seconds for all epochs.
struct Way {
  std::string source;  // empty: the copy that exists is read, wherever it came from
  bool staged = false;
  Estimate seconds;
  double copying = 0;  // part of `seconds`, typical value
  ByRound rounds;      // seconds at the rates of each round
};

enum class Advice { NotDecided, StageFirst, TrainDirectly, NoClearDifference };

// By the difference of the time with the staged copy from that without it.
Advice advice_by(Difference staged_by_direct);

struct Decision {
  Advice advice = Advice::NotDecided;
  std::vector<std::string> not_decided_because;
  std::vector<Way> ways;              // quickest first
  std::vector<BreakEven> break_even;  // for each source, in their order; empty without a copy or its rate
  bool has_room = true;               // for the staged dataset
  std::optional<Way> staged, direct;  // the quickest of each kind
  PairedComparison difference;        // seconds of `staged` divided by those of `direct`, by round
  std::optional<Way> meanwhile;       // staged from the same source during the first epoch (`run --now`)
};

// StageFirst or TrainDirectly only if the interval of the ratio of both, paired by rounds, excludes 1 and the
// ratio differs from 1 by at least 3 %.
Decision decide(const Question& question, const std::vector<Source>& sources,
                const std::optional<Rate>& local);

}  // namespace spark::bench
