#include "bench/record/overlap.hpp"

#include <algorithm>
#include <map>

namespace spark::bench {
namespace {

struct Span {
  double from = 0, to = 0;  // seconds since the epoch
};

double start_of(const Record& record) {
  return std::chrono::duration<double>(record.started.time_since_epoch()).count();
}

bool is_of(const Cell& cell, const std::string& path, const std::string& scenario) {
  return cell.path == path && cell.scenario == scenario && cell.round > 0 && cell.status == CellStatus::Valid;
}

std::vector<Span> spans_of(const Record& record, const std::string& path, const std::string& scenario,
                           const std::set<unsigned>& rounds) {
  std::vector<Span> spans;
  const double start = start_of(record);
  for (const Cell& cell : record.cells) {
    if (!is_of(cell, path, scenario) || !rounds.contains(cell.round)) continue;
    spans.push_back({start + cell.at_s, start + cell.at_s + cell.seconds});
  }
  return spans;
}

double length_of(const std::vector<Span>& spans) {
  double length = 0;
  for (const Span& span : spans) length += span.to - span.from;
  return length;
}

// Seconds in which both hosts measured.
double shared(const std::vector<Span>& a, const std::vector<Span>& b) {
  double seconds = 0;
  for (const Span& one : a) {
    for (const Span& other : b)
      seconds += std::max(0.0, std::min(one.to, other.to) - std::max(one.from, other.from));
  }
  return seconds;
}

// The begin of each cell by its number in the run.
std::map<unsigned, double> begins_of(const Record& record) {
  std::map<unsigned, double> begins;
  const double start = start_of(record);
  for (const Cell& cell : record.cells) begins[cell.order] = start + cell.at_s;
  return begins;
}

}  // namespace

double overlap_of(const std::vector<Record>& records, const std::string& path, const std::string& scenario,
                  const std::set<unsigned>& rounds) {
  std::vector<std::vector<Span>> hosts;
  for (const Record& record : records) {
    hosts.push_back(spans_of(record, path, scenario, rounds));
    if (length_of(hosts.back()) <= 0) hosts.pop_back();
  }
  double least = 1;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (std::size_t j = 0; j < hosts.size(); ++j) {
      if (i != j) least = std::min(least, shared(hosts[i], hosts[j]) / length_of(hosts[i]));
    }
  }
  return least;
}

std::set<unsigned> valid_rounds(const Record& record, const std::string& path, const std::string& scenario) {
  std::set<unsigned> rounds;
  for (const Cell& cell : record.cells) {
    if (is_of(cell, path, scenario)) rounds.insert(cell.round);
  }
  return rounds;
}

void align_clocks(std::vector<Record>& records) {
  if (records.empty()) return;
  const auto first = begins_of(records.front());
  for (std::size_t i = 1; i < records.size(); ++i) {
    std::vector<double> behind;
    for (const auto& [order, begin] : begins_of(records[i])) {
      if (const auto same = first.find(order); same != first.end()) behind.push_back(same->second - begin);
    }
    if (behind.empty()) continue;
    const std::chrono::duration<double> offset(median(behind));
    records[i].started += std::chrono::duration_cast<WallTime::duration>(offset);
  }
}

}  // namespace spark::bench
