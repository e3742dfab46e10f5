#include "bench/verdict/evidence.hpp"

#include <algorithm>

namespace spark::bench {

unsigned nodes_of(const Record& record) {
  return std::max({1U, record.asked.nodes, static_cast<unsigned>(record.hosts.size())});
}

double sharers_of(const Record& record, const PathRecord& path) {
  const double measured = std::max(1.0, static_cast<double>(record.hosts.size()));
  return is_remote(path.storage.kind) ? nodes_of(record) / measured : 1;
}

std::optional<Rate> measured_rate(const Record& record, const PathRecord& path, const std::string& scenario,
                                  double sharers, std::vector<std::string>& why) {
  const Summary summary = summarize(record, path.name, scenario);
  ByRound rounds = summary.rate_of_round;
  for (auto& [round, rate] : rounds) rate /= sharers;
  auto rate = rate_of_rounds(std::move(rounds));
  if (rate) return rate;
  const std::string what = "'" + scenario + "' of " + path.name;
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

std::vector<std::string> reasons_against(const Record& record) {
  std::vector<std::string> reasons;
  if (record.interrupted) reasons.emplace_back("the run was interrupted");
  if (record.rate_limit > 0)
    reasons.push_back("the run was held to " + format_rate(static_cast<double>(record.rate_limit)) +
                      " (--rate-limit)");
  return reasons;
}

// A target that has just received the benchmark's files may serve them from its memory.
std::vector<std::string> target_notes(const Record& record) {
  const Bytes memory = record.asked.target_memory;
  std::vector<std::string> notes;
  for (const PathRecord& path : record.paths) {
    if (!is_remote(path.storage.kind) || path.files.empty()) continue;
    Bytes bytes = path.small_bytes;
    for (const DataFile& file : path.files) bytes += file.bytes;
    if (memory == 0 && !path.read_only_reason.empty()) continue;
    if (memory > 0 && bytes > memory) continue;
    notes.push_back("the " + format_bytes(bytes) + " that were read from " + path.name + " " +
                    (memory > 0
                         ? "fit into its target's memory (" + format_bytes(memory) + ")"
                         : "had just been written, and may fit into its target's memory (--target-memory)") +
                    ": its drives may be slower than this");
  }
  return notes;
}

std::string memory_caution(const PathRecord& local, const std::string& what) {
  return local.name + " is in this host's memory, so its rates are not those of a drive, and " + what +
         " staged there takes memory from the job";
}

}  // namespace spark::bench
