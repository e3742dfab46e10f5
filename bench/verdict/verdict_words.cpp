#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "bench/record/words.hpp"
#include "bench/verdict/loading.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

std::string epochs_text(double epochs) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f %s", epochs, epochs == 1 ? "epoch" : "epochs");
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.2f" : value < 99.5 ? "%.1f" : "%.0f", value);
  return text;
}

std::string way_text(const Way& way) {
  if (way.staged && way.source.empty()) return "staged";
  return way.staged ? "staged from " + way.source : "read from " + way.source + " directly";
}

std::string hours_words(const Verdict& verdict, const Way& way) {
  return seconds_text(way.seconds.value) + " " + way_text(way) +
         (verdict.question.is_staged && way.staged ? " (it is already)" : "");
}

// "A checkpoint of 105 GB takes 21 s to local, 1 min 36 s to nas: with stage-out the job waits 1 min 15 s
// less than for nas."
std::string checkpoint_text(const Verdict& verdict) {
  const Bytes bytes = verdict.checkpoints.bytes;
  if (bytes == 0) return "";
  const auto& times = verdict.checkpoints.times;
  if (times.empty()) return "Not decided: " + join(verdict.checkpoints.lacks, "; ") + ".";
  std::vector<std::string> words;
  for (const CheckpointTime& time : times)
    words.push_back(seconds_text(time.seconds.value) + " to " + time.path);
  const std::size_t hosts = verdict.hosts.size();
  std::string text =
      "A checkpoint of " + format_bytes(bytes) + ", written by " +
      (hosts > 1 ? "one of " + std::to_string(hosts) + " hosts that all write" : "this host alone") +
      ", takes " + join(words, ", ");
  if (!verdict.checkpoints.has_local || times.size() < 2) return text + ".";
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double less = times[i].seconds.value - times.front().seconds.value;
    text += i == 1 ? ": with stage-out the job waits " : ", ";
    // Of unequal numbers of rounds, the medians may say the opposite of the common rounds.
    const Difference by_rounds = times[i].local_by_this;
    text += by_rounds == Difference::Lower && less > 0 ? seconds_text(less) + " less than"
            : by_rounds == Difference::Higher          ? "no less than"
                                                       : "not clearly less than";
    text += " for " + times[i].path;
  }
  return text + ".";
}

std::string answer(const Verdict& verdict) {
  const Decision& decision = verdict.decision;
  const std::string epochs = epochs_text(verdict.question.epochs);
  const std::string take = verdict.question.epochs == 1 ? " takes " : " take ";
  const std::string of = " of " + format_bytes(verdict.question.dataset);
  switch (decision.advice) {
    case Advice::StageFirst:
      return "Stage first: " + epochs + of + take + hours_words(verdict, *decision.staged) + ", " +
             seconds_text(decision.direct->seconds.value - decision.staged->seconds.value) + " less than " +
             way_text(*decision.direct) + ".";
    case Advice::TrainDirectly:
      if (!decision.has_room) {
        return "Train directly from " + decision.direct->source + ", " +
               seconds_text(decision.direct->seconds.value) + " for " + epochs + of +
               ": it can't be staged, there is not enough space: " +
               format_bytes(verdict.question.local_room) + ", and " +
               format_bytes(static_cast<Bytes>(kRoomFactor * static_cast<double>(verdict.question.dataset))) +
               " are needed.";
      }
      return "Train directly: " + epochs + of + take + seconds_text(decision.direct->seconds.value) + " " +
             way_text(*decision.direct) + ", " +
             seconds_text(decision.staged->seconds.value - decision.direct->seconds.value) + " less than " +
             way_text(*decision.staged) + ".";
    case Advice::NoClearDifference:
      return "No clear difference: " + epochs + of + take + "about " +
             seconds_text(decision.staged->seconds.value) + " " + way_text(*decision.staged) + " and " +
             seconds_text(decision.direct->seconds.value) + " " + way_text(*decision.direct) +
             ", a difference within the uncertainty of the measurement.";
    case Advice::NotDecided:
      break;
  }
  const std::string why = decision.not_decided_because.empty()
                              ? "staging and reading directly could not both be measured"
                              : join(decision.not_decided_because, "; ");
  return "Not decided: " + why + ".";
}

std::string end_text(const std::optional<double>& epochs) {
  return epochs ? short_number(*epochs) : "never";
}

// "Staging from nfs pays from epoch 2 (break-even after 1.20 epochs, 95 %: 1.13 to 1.31)."
std::string break_even_text(const Source& source, const BreakEven& even, bool is_bound_by_job) {
  const std::string range =
      even.has_range ? "95 %: " + end_text(even.best) + " to " + end_text(even.worst) : "";
  if (!even.epochs && (!even.has_range || !even.best)) {
    return "Staging from " + source.name + " never pays: an epoch from the local drive takes no less.";
  }
  if (!even.epochs) return "Staging from " + source.name + " never pays, most likely (" + range + " epochs).";
  char from[32];
  std::snprintf(from, sizeof from, "%.0f", pays_from(*even.epochs));
  return "Staging from " + source.name + " pays from epoch " + from + " (break-even after " +
         short_number(*even.epochs) + " epochs" + (range.empty() ? "" : ", " + range) + ")" +
         (is_bound_by_job ? "." : ", if the job reads as fast as it can.");
}

// Of a copy that exists: 0 epochs, or never.
std::string copy_pays_text(const Source& source, const BreakEven& even, bool is_bound_by_job) {
  const std::string than = " than reading from " + source.name;
  if (!even.epochs) {
    return even.has_range && even.best
               ? "The staged copy is no faster" + than + ", most likely."
               : "The staged copy is no faster" + than + ": an epoch from the local drive takes no less.";
  }
  return "The staged copy is faster" + than + " from the first epoch on" +
         (even.has_range && !even.worst ? ", most likely" : "") +
         (is_bound_by_job ? "." : ", if the job reads as fast as it can.");
}

// Empty if only one host measured.
std::string hosts_text(const Verdict& verdict) {
  if (verdict.hosts.size() < 2) return "";
  return "Measured on " + std::to_string(verdict.hosts.size()) + " hosts at once (" +
         join(verdict.hosts, ", ") + "): a rate is the average of one host.";
}

// The rates used, and the demand below which staging gains nothing.
std::string rates_text(const Verdict& verdict) {
  const bool is_shared = verdict.nodes > std::max<std::size_t>(1, verdict.hosts.size());
  std::string text =
      "Measured by '" + verdict.judged_by + "'" +
      (is_shared ? ", a target's rates divided among " + std::to_string(verdict.nodes) + " nodes:" : ":");
  double fastest = 0;
  for (const Source& source : verdict.sources) {
    text += " " + source.name + " reads " + format_rate(source.read.typical.value);
    if (source.copy) text += " and is staged from at " + format_rate(source.copy->typical.value);
    text += ",";
    fastest = std::max(fastest, source.read.typical.range.low);
  }
  text += " " + verdict.local + " reads " + format_rate(verdict.local_read->typical.value) + ".";
  if (verdict.question.demand > 0 || !verdict.rates_tell) return text;
  return text + " A job that consumes less than " + format_rate(fastest) + " gains nothing from staging.";
}

std::string demand_text(const Verdict& verdict) {
  const double demand = verdict.question.demand;
  std::string text = "The job consumes " + format_rate(demand);
  if (!verdict.demand_words.empty()) text += " (" + verdict.demand_words + ")";
  text += ":";
  std::string separator = " ";
  for (const Source& source : verdict.sources) {
    text += separator + source.name + " feeds " + percent_text(fed_share(source.read.typical.value, demand)) +
            " of it";
    separator = ", ";
  }
  if (verdict.local_read) {
    text +=
        separator + verdict.local + " " + percent_text(fed_share(verdict.local_read->typical.value, demand));
  }
  return text + ".";
}

std::string assumed_text(const Verdict& verdict) {
  std::vector<std::string> assumed;
  if (verdict.dataset_assumed) {
    assumed.push_back("a dataset of " + format_bytes(verdict.question.dataset) +
                      " that fits (--dataset; the break-even "
                      "does not depend on it)");
  }
  if (verdict.epochs_assumed) assumed.push_back(epochs_text(verdict.question.epochs) + " (--epochs)");
  if (verdict.files_assumed) assumed.emplace_back("large files that are read from end to end (--dataset)");
  const std::size_t measured = std::max<std::size_t>(1, verdict.hosts.size());
  if (verdict.nodes > measured) {
    assumed.push_back(std::to_string(verdict.nodes) +
                      " nodes that read at once and share evenly the rate that the target gave " +
                      (measured == 1 ? "this one" : "these " + std::to_string(measured)) + " (--nodes)");
  }
  return assumed.empty() ? "" : "Assumed: " + join(assumed, ", ") + ".";
}

// Staging during the first epoch, if it is at least 3 % faster and the decision already gives advice.
std::string meanwhile_text(const Verdict& verdict) {
  const Decision& decision = verdict.decision;
  if (decision.advice == Advice::NotDecided || !decision.meanwhile || !decision.staged || !decision.direct)
    return "";
  const Estimate& seconds = decision.meanwhile->seconds;
  const double others = std::min(decision.staged->seconds.value, decision.direct->seconds.value);
  if (seconds.value >= (1 - kNegligible) * others) return "";
  const double epochs = verdict.question.epochs;
  return "Staged from " + decision.meanwhile->source + " during the first epoch (`spark-stage run --now`), " +
         epochs_text(epochs) + (epochs == 1 ? " takes" : " take") + " about " + seconds_text(seconds.value) +
         " (95 %: " + seconds_text(seconds.range.low) + " to " + seconds_text(seconds.range.high) +
         "): the first one lasts as long as the copy or the job, whichever is slower.";
}

}  // namespace

std::string reading_words(const AskedFor& asked) {
  if (has_small_files(asked)) {
    return "whole files of " + format_bytes(mean_dataset_file(asked)) + " on average";
  }
  return asked.demand.order == ReadOrder::Random ? "parts of large files in random order"
                                                 : "large files from end to end";
}

std::vector<std::string> answers_of(const Verdict& verdict) {
  std::vector<std::string> sentences;
  if (verdict.loading) {
    sentences.push_back(loading_sentences(verdict).front());
  } else {
    // Checkpoints alone are no question about staging.
    const std::string checkpoint = checkpoint_text(verdict);
    if (!checkpoint.empty()) sentences.push_back(checkpoint);
    if (checkpoint.empty() || verdict.question.demand > 0) sentences.push_back(answer(verdict));
  }
  for (const std::string& caution : verdict.cautions) sentences.push_back("Caution: " + caution + ".");
  return sentences;
}

std::vector<std::string> sentences_of(const Verdict& verdict) {
  std::vector<std::string> sentences = answers_of(verdict);
  if (verdict.loading) {  // it has no sources, so that hosts and notes alone follow
    const std::vector<std::string> all = loading_sentences(verdict);
    sentences.insert(sentences.end(), all.begin() + 1, all.end());
  }
  for (std::size_t i = 0; i < verdict.sources.size(); ++i) {
    const Source& source = verdict.sources[i];
    const bool is_staged = verdict.question.is_staged;
    if (!verdict.local_read || !verdict.rates_tell || (!source.copy && !is_staged)) continue;
    sentences.push_back((is_staged ? copy_pays_text : break_even_text)(source, verdict.decision.break_even[i],
                                                                       verdict.question.demand > 0));
  }
  if (const std::string hosts = hosts_text(verdict); !hosts.empty()) sentences.push_back(hosts);
  if (!verdict.sources.empty() && verdict.local_read) sentences.push_back(rates_text(verdict));
  if (std::string now = meanwhile_text(verdict); !now.empty()) sentences.push_back(std::move(now));
  if (verdict.question.demand > 0 && verdict.rates_tell && !verdict.sources.empty())
    sentences.push_back(demand_text(verdict));
  for (const std::string& note : verdict.notes) sentences.push_back("Note: " + note + ".");
  if (const std::string assumed = assumed_text(verdict); !assumed.empty() && !verdict.sources.empty()) {
    sentences.push_back(assumed);
  }
  return sentences;
}

}  // namespace spark::bench
