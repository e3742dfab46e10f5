#include "bench/hosts/merged_record.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include "bench/record/overlap.hpp"
#include "bench/record/words.hpp"

namespace spark::bench {
namespace {

using CellName = std::tuple<std::string, std::string, unsigned>;

CellName name_of(const Cell& cell) {
  return {cell.path, cell.scenario, cell.round};
}

std::string of_host(const Record& record, const std::string& words) {
  return record.host.name + ": " + words;
}

// Rates are summed while hosts are added, and divided at the end.
class Sum {
 public:
  explicit Sum(Cell& into) : cell_(into) { add_rates(into); }

  void add(const Record& record, const Cell& cell) {
    for (const std::string& caution : cell.cautions) cell_.cautions.push_back(of_host(record, caution));
    if (cell.status != CellStatus::Valid) return refuse(record, cell.reasons);
    merge_into(cell_.bins, cell.bins);
    add_rates(cell);
  }

  void refuse(const Record& record, const std::vector<std::string>& reasons) {
    if (cell_.status == CellStatus::NotMeasured) return;
    if (cell_.status == CellStatus::Valid) cell_.status = CellStatus::Invalid;
    if (reasons.empty()) cell_.reasons.push_back(of_host(record, "not measured"));
    for (const std::string& reason : reasons) cell_.reasons.push_back(of_host(record, reason));
  }

  void finish() {
    cell_.memory.reset();  // of one host; its own record has it
    if (cell_.status != CellStatus::Valid) return;
    cell_.bytes = static_cast<Bytes>(std::llround(rate_ / hosts_ * cell_.seconds));
    cell_.ios = static_cast<std::uint64_t>(std::llround(ios_ / hosts_ * cell_.seconds));
  }

 private:
  void add_rates(const Cell& cell) {
    if (cell.status != CellStatus::Valid || cell.seconds <= 0) return;
    rate_ += static_cast<double>(cell.bytes) / cell.seconds;
    ios_ += static_cast<double>(cell.ios) / cell.seconds;
    hosts_ += 1;
  }

  Cell& cell_;
  double rate_ = 0, ios_ = 0, hosts_ = 0;
};

void add_overlaps(Record& merged, const std::vector<Record>& records) {
  for (PathRecord& path : merged.paths) {  // each host has its own local drive
    for (const ScenarioRecord& scenario : merged.scenarios) {
      const std::set<unsigned> rounds = valid_rounds(merged, path.name, scenario.id);
      if (!is_remote(path.storage.kind) || records.size() < 2 || rounds.empty()) continue;
      const double share = overlap_of(records, path.name, scenario.id, rounds);
      path.at_once.push_back({scenario.id, share});
      if (share < kEnoughOverlap) merged.warnings.push_back(apart_words(path.name, path.at_once.back()));
    }
  }
}

}  // namespace

Record merged_record(const std::vector<Record>& records) {
  Record merged = records.front();
  merged.hosts.clear();
  std::vector<std::map<CellName, const Cell*>> cells(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    merged.hosts.push_back(records[i].host.name);
    merged.interrupted = merged.interrupted || records[i].interrupted;
    for (const Cell& cell : records[i].cells) cells[i][name_of(cell)] = &cell;
    if (i == 0) continue;
    for (const std::string& warning : records[i].warnings)
      merged.warnings.push_back(of_host(records[i], warning));
  }
  for (Cell& cell : merged.cells) {
    Sum sum(cell);
    for (std::size_t i = 1; i < records.size(); ++i) {
      const auto other = cells[i].find(name_of(cell));
      if (other == cells[i].end()) {
        sum.refuse(records[i], {});
      } else {
        sum.add(records[i], *other->second);
      }
    }
    sum.finish();
  }
  add_overlaps(merged, records);
  return merged;
}

}  // namespace spark::bench
