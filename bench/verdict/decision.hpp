// Stage first, or train from the network? Arithmetic on measured rates, with the uncertainty of each carried
// to the end. Pure; docs/bench-method.md has the formulas in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/record/statistics.hpp"

namespace spark::bench {

// What the user wants to know it for.
struct Question {
  Bytes dataset = 0;
  double epochs = 0;
  double demand = 0;     // bytes per second that the job consumes; 0: as fast as they come
  Bytes local_free = 0;  // on the drive that would be staged to
};

// A path that the dataset could be read from, or staged from. Bytes per second.
struct Source {
  std::string name;
  Estimate read;
  std::optional<Estimate> copy;  // staging from it to the local drive; none: not measured
};

// Staging needs this much of the dataset's size to be free.
inline constexpr double kRoomFactor = 1.05;

// Seconds of one epoch: what is slower of storage and job counts.
double epoch_seconds(Bytes dataset, double rate, double demand);

// How much of the demand a rate feeds, at most 1; 1 without a demand.
double fed_share(double rate, double demand);

// After how many epochs the copy has paid for itself (it does not depend on the dataset's size); no value:
// never, since an epoch from the local drive takes no less.
std::optional<double> break_even(double read, double copy, double local, double demand);

struct BreakEven {
  std::optional<double> epochs;       // at the typical rates
  std::optional<double> best, worst;  // at those ends of the intervals that favour staging most, and least
};
BreakEven break_even_of(const Source& source, const Estimate& local, double demand);

// The first whole epoch at whose end staging has won.
double pays_from(double break_even_epochs);

// One way to train: so many seconds for all epochs.
struct Way {
  std::string source;
  bool staged = false;
  Estimate seconds;
  double copying = 0;  // of them, typically
};

enum class Advice { NotDecided, StageFirst, TrainDirectly, NoClearDifference };

struct Decision {
  Advice advice = Advice::NotDecided;
  std::vector<std::string> not_decided_because;
  std::vector<Way> ways;              // the quickest first
  std::vector<BreakEven> break_even;  // of each source, in their order; empty for one without a copy rate
  bool has_room = true;               // for the staged dataset
  std::optional<Way> staged, direct;  // the quickest of each
};

// StageFirst and TrainDirectly only if the slowest case of the one still beats the fastest of the other, by
// 3 % or more.
Decision decide(const Question& question, const std::vector<Source>& sources,
                const std::optional<Estimate>& local);

}  // namespace spark::bench
