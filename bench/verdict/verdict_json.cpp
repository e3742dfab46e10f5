#include "base/text.hpp"
#include "bench/record/record_writer.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

json::object object_of(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low_95", estimate.range.low}, {"high_95", estimate.range.high}};
}

json::value value_of(const std::optional<Rate>& rate) {
  return rate ? json::value(object_of(rate->typical)) : json::value(nullptr);
}

const char* to_string(Advice advice) {
  static constexpr const char* kWords[] = {"not_decided", "stage_first", "train_directly",
                                           "no_clear_difference"};
  return kWords[static_cast<std::size_t>(advice)];
}

json::value difference_object(const PairedComparison& difference) {
  if (difference.difference == Difference::TooFewRounds) return nullptr;
  return json::object{{"ratio", difference.ratio},
                      {"low_95", difference.range.low},
                      {"high_95", difference.range.high},
                      {"rounds", difference.rounds}};
}

json::object object_of(const Source& source, const BreakEven& even, const Verdict& verdict) {
  const double fed = fed_share(source.read.typical.value, verdict.question.demand);
  json::object object{{"name", source.name},
                      {"read_bytes_per_second", object_of(source.read.typical)},
                      {"copy_bytes_per_second", value_of(source.copy)},
                      {"fed_share", verdict.rates_tell ? json::value(fed) : json::value(nullptr)}};
  const bool is_staged = verdict.local_read && verdict.question.is_staged;
  if (!verdict.rates_tell || (!source.copy && !is_staged)) return object;
  object["break_even_epochs"] = or_null(even.epochs);
  object["break_even_best"] = or_null(even.best);
  object["break_even_worst"] = or_null(even.worst);
  object["pays_from_epoch"] = even.epochs ? json::value(pays_from(*even.epochs)) : json::value("never");
  return object;
}

// Neither text nor JSON has times of a run with a limit, or of hosts that did not load at once.
json::object object_of(const Loading& loading) {
  json::array times, staged;
  for (const LoadTime& time : loading.times) {
    if (loading.tells_no_times) break;
    times.push_back(json::object{{"path", printable(time.path)},
                                 {"scenario", printable(time.scenario)},
                                 {"seconds", object_of(time.seconds)},
                                 {"bytes_per_second", object_of(time.rate.typical)},
                                 {"kept_in_memory_share", or_null(time.kept)}});
  }
  for (const StagedLoad& one : loading.staged)
    if (!loading.tells_no_times)
      staged.push_back(json::object{{"path", printable(one.path)}, {"seconds_less", one.less}});
  return {{"model_bytes", loading.model},
          {"loaded_bytes", loading.loaded},
          {"times", std::move(times)},
          {"staged", std::move(staged)}};
}

json::value value_of_checkpoints(const Verdict& verdict) {
  const Checkpoints& checkpoints = verdict.checkpoints;
  if (checkpoints.bytes == 0) return nullptr;
  json::array times;
  for (const CheckpointTime& time : checkpoints.times)
    times.push_back(json::object{{"path", printable(time.path)}, {"seconds", object_of(time.seconds)}});
  return json::object{{"bytes", checkpoints.bytes},
                      {"times", std::move(times)},
                      {"not_decided_because", FieldWriter::value_of(checkpoints.lacks)}};
}

}  // namespace

json::object to_json(const Verdict& verdict) {
  json::array sources, ways;
  for (std::size_t i = 0; i < verdict.sources.size(); ++i) {
    sources.push_back(object_of(verdict.sources[i], verdict.decision.break_even[i], verdict));
  }
  for (const Way& way : verdict.decision.ways) {
    ways.push_back(
        json::object{{"source", way.source.empty() ? json::value(nullptr) : json::value(way.source)},
                     {"staged", way.staged},
                     {"seconds", object_of(way.seconds)},
                     {"copying_s", way.copying}});
  }
  const std::optional<Way>& meanwhile = verdict.decision.meanwhile;
  const bool is_direct = verdict.decision.advice == Advice::TrainDirectly;
  const char* advice = verdict.loading && is_direct ? "load_directly" : to_string(verdict.decision.advice);
  return {{"advice", advice},
          {"sentences", FieldWriter::value_of(sentences_of(verdict))},
          {"not_decided_because", FieldWriter::value_of(verdict.decision.not_decided_because)},
          {"inputs", json::object{{"dataset_bytes", verdict.question.dataset},
                                  {"dataset_assumed", verdict.dataset_assumed},
                                  {"epochs", verdict.question.epochs},
                                  {"epochs_assumed", verdict.epochs_assumed},
                                  {"demand_bytes_per_second", verdict.question.demand},
                                  {"judged_by", verdict.judged_by},
                                  {"files_assumed", verdict.files_assumed},
                                  {"nodes", verdict.nodes},
                                  {"hosts", FieldWriter::value_of(verdict.hosts)},
                                  {"is_staged", verdict.question.is_staged},
                                  {"local", verdict.local},
                                  {"local_bytes_per_second", value_of(verdict.local_read)},
                                  {"has_room", verdict.decision.has_room}}},
          {"loading", verdict.loading ? json::value(object_of(*verdict.loading)) : json::value(nullptr)},
          {"checkpoint", value_of_checkpoints(verdict)},
          {"sources", std::move(sources)},
          {"ways", std::move(ways)},
          {"streaming_s", meanwhile ? json::value(meanwhile->seconds.value) : json::value(nullptr)},
          {"meanwhile", meanwhile ? json::value(json::object{{"source", meanwhile->source},
                                                             {"command", "spark-stage run --now"},
                                                             {"seconds", object_of(meanwhile->seconds)}})
                                  : json::value(nullptr)},
          {"staged_by_direct", difference_object(verdict.decision.difference)}};
}

}  // namespace spark::bench
