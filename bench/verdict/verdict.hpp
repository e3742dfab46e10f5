// A record's answer: stage first, or train from the network. Takes valid cells only, and says what is
// missing.
#pragma once

#include <string>
#include <vector>

#include "bench/record/record.hpp"
#include "bench/verdict/decision.hpp"

namespace spark::bench {

// Where the user said nothing. The break-even does not depend on the size of the dataset.
inline constexpr Bytes kAssumedDataset = 1'000'000'000'000;
inline constexpr unsigned kAssumedEpochs = 30;

struct Verdict {
  Question question;
  bool dataset_assumed = false, epochs_assumed = false, files_assumed = false;
  unsigned nodes = 1;              // that share what a target gives
  std::vector<std::string> hosts;  // that measured at once; empty: one alone
  std::string demand_words;
  std::string judged_by;  // the scenario whose rates were taken
  std::string local;      // the path that would be staged to; empty: none was measured
  std::optional<Rate> local_read;
  std::vector<Source> sources;
  Decision decision;               // its not_decided_because names what is missing
  std::vector<std::string> notes;  // what else to know: a path left out and why, memory
};

// "whole files of 20.1 kB on average"
std::string reading_words(const AskedFor& asked);

Verdict verdict_of(const Record& record);

// The answer first, then its reasons. Each a sentence.
std::vector<std::string> sentences_of(const Verdict& verdict);

json::object to_json(const Verdict& verdict);

}  // namespace spark::bench
