#include "bench/verdict/decision.hpp"

#include <algorithm>
#include <cmath>

namespace spark::bench {
namespace {

Way train_directly(const Question& question, const Source& source) {
  const auto seconds = [&](double rate) {
    return question.epochs * epoch_seconds(question.dataset, rate, question.demand);
  };
  const Estimate& read = source.read;
  return {source.name, false, {seconds(read.value), {seconds(read.range.high), seconds(read.range.low)}}, 0};
}

Way stage_first(const Question& question, const Source& source, const Estimate& local) {
  const auto size = static_cast<double>(question.dataset);
  const auto seconds = [&](double copy, double read) {
    return size / copy + question.epochs * epoch_seconds(question.dataset, read, question.demand);
  };
  const Estimate& copy = *source.copy;
  return {source.name,
          true,
          {seconds(copy.value, local.value),
           {seconds(copy.range.high, local.range.high), seconds(copy.range.low, local.range.low)}},
          size / copy.value};
}

std::optional<Way> quickest(const std::vector<Way>& ways, bool staged) {
  const auto found =
      std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.staged == staged; });
  return found == ways.end() ? std::nullopt : std::optional(*found);
}

bool clearly_beats(const Way& a, const Way& b) {
  return a.seconds.range.high < b.seconds.range.low && a.seconds.value <= (1 - kNegligible) * b.seconds.value;
}

Advice advice_of(const Decision& decision) {
  if (!decision.direct) return Advice::NotDecided;
  if (!decision.has_room) return Advice::TrainDirectly;
  if (!decision.staged) return Advice::NotDecided;
  if (clearly_beats(*decision.staged, *decision.direct)) return Advice::StageFirst;
  if (clearly_beats(*decision.direct, *decision.staged)) return Advice::TrainDirectly;
  return Advice::NoClearDifference;
}

}  // namespace

double epoch_seconds(Bytes dataset, double rate, double demand) {
  const double by_storage = static_cast<double>(dataset) / rate;
  return demand > 0 ? std::max(by_storage, static_cast<double>(dataset) / demand) : by_storage;
}

double fed_share(double rate, double demand) {
  return demand > 0 ? std::min(1.0, rate / demand) : 1;
}

std::optional<double> break_even(double read, double copy, double local, double demand) {
  // For one byte: the dataset's size cancels.
  const auto seconds = [&](double rate) { return demand > 0 ? std::max(1 / rate, 1 / demand) : 1 / rate; };
  const double saved = seconds(read) - seconds(local);
  if (saved <= 0) return std::nullopt;
  return 1 / copy / saved;
}

BreakEven break_even_of(const Source& source, const Estimate& local, double demand) {
  const Estimate& read = source.read;
  const Estimate& copy = *source.copy;
  return {break_even(read.value, copy.value, local.value, demand),
          break_even(read.range.low, copy.range.high, local.range.high, demand),
          break_even(read.range.high, copy.range.low, local.range.low, demand)};
}

double pays_from(double break_even_epochs) {
  return std::floor(break_even_epochs) + 1;
}

Decision decide(const Question& question, const std::vector<Source>& sources,
                const std::optional<Estimate>& local) {
  Decision decision;
  decision.has_room =
      static_cast<double>(question.local_free) >= kRoomFactor * static_cast<double>(question.dataset);
  for (const Source& source : sources) {
    decision.ways.push_back(train_directly(question, source));
    const bool can_stage = local && source.copy;
    decision.break_even.push_back(can_stage ? break_even_of(source, *local, question.demand) : BreakEven{});
    if (can_stage && decision.has_room) decision.ways.push_back(stage_first(question, source, *local));
  }
  std::stable_sort(decision.ways.begin(), decision.ways.end(),
                   [](const Way& a, const Way& b) { return a.seconds.value < b.seconds.value; });
  decision.staged = quickest(decision.ways, true);
  decision.direct = quickest(decision.ways, false);
  decision.advice = advice_of(decision);
  return decision;
}

}  // namespace spark::bench
