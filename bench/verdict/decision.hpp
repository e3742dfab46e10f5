// Stage first, or train from the network? Arithmetic on measured rates, with the uncertainty of each carried
// to the end. Pure; docs/bench-method.md has the formulas in words.
#pragma once

#include <map>
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
  double demand = 0;       // bytes per second that the job consumes; 0: unknown, as fast as they come
  Bytes local_room = 0;    // for the dataset, on the drive that would be staged to
  bool is_staged = false;  // there is a copy already: copying costs nothing
};

using ByRound = std::map<unsigned, double>;  // a figure of each valid round

// Bytes per second: the median of the rounds with its interval, and the rounds themselves.
struct Rate {
  Estimate typical;
  ByRound rounds;
};

// No value for fewer than three rounds.
std::optional<Rate> rate_of_rounds(ByRound rounds);

// A path that the dataset could be read from, or staged from.
struct Source {
  std::string name;
  Rate read;
  std::optional<Rate> copy;  // staging from it to the local drive; none: not measured
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
  std::optional<double> epochs;  // at the typical rates
  // Student's 95 % interval over the rounds, read, copy and local drive of one round belonging together. An
  // end without a value is "never". No range with fewer than three such rounds.
  bool has_range = false;
  std::optional<double> best, worst;
};
BreakEven break_even_of(const Source& source, const Rate& local, double demand);

// The first whole epoch at whose end staging has won.
double pays_from(double break_even_epochs);

// One way to train: so many seconds for all epochs.
struct Way {
  std::string source;
  bool staged = false;
  Estimate seconds;
  double copying = 0;  // of them, typically
  ByRound rounds;      // seconds at the rates of each round
};

// The first epoch from the network while the copy is made, the others from the copy. Estimated: job and copy
// share what the path gives to one of them alone.
struct Streaming {
  std::string source;
  double seconds = 0;
};

enum class Advice { NotDecided, StageFirst, TrainDirectly, NoClearDifference };

struct Decision {
  Advice advice = Advice::NotDecided;
  std::vector<std::string> not_decided_because;
  std::vector<Way> ways;               // the quickest first
  std::vector<BreakEven> break_even;   // of each source, in their order; empty for one without a copy rate
  bool has_room = true;                // for the staged dataset
  std::optional<Way> staged, direct;   // the quickest of each
  PairedComparison difference;         // seconds of `staged` by those of `direct`, round by round
  std::optional<Streaming> streaming;  // from the source of `staged`, where that is another way
};

// StageFirst and TrainDirectly only where the interval of the ratio of both, paired by rounds, leaves 1 out,
// and the ratio is 3 % away from it.
Decision decide(const Question& question, const std::vector<Source>& sources,
                const std::optional<Rate>& local);

}  // namespace spark::bench
