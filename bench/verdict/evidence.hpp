// What a record's cells tell its verdict, whatever the question: rates, and reasons to doubt them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/record/record.hpp"
#include "bench/verdict/decision.hpp"

namespace spark::bench {

// Nodes that read at the same time: those of the question, at least the hosts that measured.
unsigned nodes_of(const Record& record);

// The number of nodes that share the rate measured by one host, alone or with others.
double sharers_of(const Record& record, const PathRecord& path);

// Bytes per second for one of `sharers` nodes, from at least three valid rounds. If there are fewer, `why`
// gets the reason.
std::optional<Rate> measured_rate(const Record& record, const PathRecord& path, const std::string& scenario,
                                  double sharers, std::vector<std::string>& why);

// Why the whole run decides nothing.
std::vector<std::string> reasons_against(const Record& record);

// Targets that may have served their memory's content.
std::vector<std::string> target_notes(const Record& record);

// About a local path in memory, on which `what` would be staged.
std::string memory_caution(const PathRecord& local, const std::string& what);

}  // namespace spark::bench
