#include "bench/verdict/decision.hpp"

#include <algorithm>
#include <cmath>

namespace spark::bench {
namespace {

Estimate estimate_or(const ByRound& rounds, double value) {
  const auto estimate = estimate_of(values_of(rounds));
  if (!estimate) return {value, {value, value}};
  return {value, {std::min(value, estimate->range.low), std::max(value, estimate->range.high)}};
}

// All epochs from one place.
Way read_from(const std::string& source, bool staged, const Question& question, const Rate& rate) {
  const auto seconds = [&](double one) {
    return question.epochs * epoch_seconds(question.dataset, one, question.demand);
  };
  Way way{source, staged, {}, 0, {}};
  for (const auto& [round, one] : rate.rounds) way.rounds[round] = seconds(one);
  way.seconds = estimate_or(way.rounds, seconds(rate.typical.value));
  return way;
}

// `seconds` of both rates: of the copy, and of reading the local drive.
template <class Seconds>
Way with_copy(const Source& source, const Rate& local, double copying, const Seconds& seconds) {
  Way way{source.name, true, {}, copying, {}};
  for (const auto& [round, copy] : source.copy->rounds) {
    const auto read = local.rounds.find(round);
    if (read != local.rounds.end()) way.rounds[round] = seconds(copy, read->second);
  }
  way.seconds = estimate_or(way.rounds, seconds(source.copy->typical.value, local.typical.value));
  return way;
}

Way stage_first(const Question& question, const Source& source, const Rate& local) {
  const auto size = static_cast<double>(question.dataset);
  return with_copy(source, local, size / source.copy->typical.value, [&](double copy, double read) {
    return size / copy + question.epochs * epoch_seconds(question.dataset, read, question.demand);
  });
}

// The job reads what has arrived, and what it waits for arrives first: each byte crosses the path once, and
// the first epoch lasts as long as the slower of the copy and the job.
std::optional<Way> stage_meanwhile(const Question& question, const Source& source, const Rate& local) {
  if (question.is_staged || question.epochs < 1) return std::nullopt;
  const auto size = static_cast<double>(question.dataset);
  return with_copy(source, local, size / source.copy->typical.value, [&](double copy, double read) {
    const double epoch = epoch_seconds(question.dataset, read, question.demand);
    return std::max(size / copy, epoch) + (question.epochs - 1) * epoch;
  });
}

std::optional<Way> quickest(const std::vector<Way>& ways, bool staged) {
  const auto found = std::ranges::find(ways, staged, &Way::staged);
  return found == ways.end() ? std::nullopt : std::optional(*found);
}

Advice advice_of(const Decision& decision) {
  if (!decision.direct) return Advice::NotDecided;
  if (!decision.has_room) return Advice::TrainDirectly;
  return decision.staged ? advice_by(decision.difference.difference) : Advice::NotDecided;
}

// Seconds that an epoch from the local drive takes less, for each byte; not positive if it takes no less.
double saved_by_an_epoch(double read, double local, double demand) {
  const auto seconds = [&](double rate) { return demand > 0 ? std::max(1 / rate, 1 / demand) : 1 / rate; };
  return seconds(read) - seconds(local);
}

// The inverse of the break-even in epochs; not positive if staging never pays off.
double paid_back_by_an_epoch(double read, double copy, double local, double demand) {
  return copy * saved_by_an_epoch(read, local, demand);
}

std::optional<double> epochs_from(double paid_back) {
  return paid_back > 0 ? std::optional(1 / paid_back) : std::nullopt;
}

}  // namespace

Advice advice_by(Difference staged_by_direct) {
  switch (staged_by_direct) {
    case Difference::Lower:
      return Advice::StageFirst;
    case Difference::Higher:
      return Advice::TrainDirectly;
    case Difference::NoClearDifference:
      return Advice::NoClearDifference;
    case Difference::TooFewRounds:
      break;
  }
  return Advice::NotDecided;
}

std::optional<Rate> rate_of_rounds(ByRound rounds) {
  const auto typical = estimate_of(values_of(rounds));
  if (!typical) return std::nullopt;
  return Rate{*typical, std::move(rounds)};
}

double epoch_seconds(Bytes dataset, double rate, double demand) {
  const double by_storage = static_cast<double>(dataset) / rate;
  return demand > 0 ? std::max(by_storage, static_cast<double>(dataset) / demand) : by_storage;
}

double fed_share(double rate, double demand) {
  return demand > 0 ? std::min(1.0, rate / demand) : 1;
}

std::optional<double> break_even(double read, double copy, double local, double demand) {
  return epochs_from(paid_back_by_an_epoch(read, copy, local, demand));
}

BreakEven break_even_of(const Source& source, const Rate& local, double demand) {
  BreakEven even;
  even.epochs =
      break_even(source.read.typical.value, source.copy->typical.value, local.typical.value, demand);
  std::vector<double> paid_back;
  for (const auto& [round, read] : source.read.rounds) {
    const auto copy = source.copy->rounds.find(round);
    const auto drive = local.rounds.find(round);
    if (copy == source.copy->rounds.end() || drive == local.rounds.end()) continue;
    paid_back.push_back(paid_back_by_an_epoch(read, copy->second, drive->second, demand));
  }
  const auto range = interval_of_mean(paid_back);
  if (!range) return even;
  even.has_range = true;
  even.best = epochs_from(range->high);
  even.worst = epochs_from(range->low);
  // A single outlier can move the mean so far that the interval excludes the median.
  if (even.epochs && (!even.best || *even.best > *even.epochs)) even.best = even.epochs;
  if (even.worst && (!even.epochs || *even.worst < *even.epochs)) even.worst = even.epochs;
  return even;
}

BreakEven break_even_of_copy(const Source& source, const Rate& local, double demand) {
  const auto if_saved = [](double seconds) { return seconds > 0 ? std::optional(0.0) : std::nullopt; };
  BreakEven even;
  even.epochs = if_saved(saved_by_an_epoch(source.read.typical.value, local.typical.value, demand));
  std::vector<double> saved;
  for (const auto& [round, read] : source.read.rounds) {
    const auto drive = local.rounds.find(round);
    if (drive != local.rounds.end()) saved.push_back(saved_by_an_epoch(read, drive->second, demand));
  }
  const auto range = interval_of_mean(saved);
  if (!range) return even;
  even.has_range = true;
  even.best = even.epochs ? even.epochs : if_saved(range->high);
  even.worst = even.epochs ? if_saved(range->low) : std::nullopt;
  return even;
}

double pays_from(double break_even_epochs) {
  return std::floor(break_even_epochs) + 1;
}

Decision decide(const Question& question, const std::vector<Source>& sources,
                const std::optional<Rate>& local) {
  Decision decision;
  decision.has_room = question.is_staged || static_cast<double>(question.local_room) >=
                                                kRoomFactor * static_cast<double>(question.dataset);
  for (const Source& source : sources) {
    decision.ways.push_back(read_from(source.name, false, question, source.read));
    const bool can_stage = local && source.copy && !question.is_staged;
    decision.break_even.push_back(can_stage ? break_even_of(source, *local, question.demand)
                                  : local && question.is_staged
                                      ? break_even_of_copy(source, *local, question.demand)
                                      : BreakEven{});
    if (can_stage && decision.has_room) decision.ways.push_back(stage_first(question, source, *local));
  }
  // The copy exists, so that it does not matter where it came from and how long that took.
  if (local && question.is_staged) decision.ways.push_back(read_from("", true, question, *local));
  std::stable_sort(decision.ways.begin(), decision.ways.end(),
                   [](const Way& a, const Way& b) { return a.seconds.value < b.seconds.value; });
  decision.staged = quickest(decision.ways, true);
  decision.direct = quickest(decision.ways, false);
  if (decision.staged && decision.direct) {
    decision.difference = compare_rounds(decision.direct->rounds, decision.staged->rounds);
    for (const Source& source : sources) {
      if (source.name == decision.staged->source)
        decision.meanwhile = stage_meanwhile(question, source, *local);
    }
  }
  decision.advice = advice_of(decision);
  return decision;
}

}  // namespace spark::bench
