#include "bench/hosts/merged_record.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.hpp"
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

// The mean of a figure over all hosts. What one of them lacks, the mean lacks too.
class Mean {
 public:
  template <class T>
  void add(const std::optional<T>& figure, double seconds) {
    ++hosts_;
    is_known_ = is_known_ && figure.has_value();
    if (figure) sum_ += static_cast<double>(*figure) / seconds;
  }
  std::optional<double> in(double seconds) const {
    return is_known_ && hosts_ > 0 ? std::optional(sum_ / hosts_ * seconds) : std::nullopt;
  }

 private:
  double sum_ = 0, hosts_ = 0;  // of figures per second
  bool is_known_ = true;
};

std::optional<std::uint64_t> rounded(std::optional<double> number) {
  return number ? std::optional(static_cast<std::uint64_t>(std::llround(*number))) : std::nullopt;
}

// The hosts' figures per second are averaged, each over its own measuring time, and then told for the first
// host's, so that shares and figures per byte are those of all hosts.
class CellMean {
 public:
  CellMean(const Record& record, Cell& into) : cell_(into), first_reasons_(into.reasons) {
    for (std::string& reason : cell_.reasons) reason = of_host(record, reason);
    for (std::string& caution : cell_.cautions) caution = of_host(record, caution);
    if (cell_.status == CellStatus::Valid) add_figures(cell_);
  }

  void add(const Record& record, const Cell& cell) {
    for (const std::string& caution : cell.cautions) cell_.cautions.push_back(of_host(record, caution));
    if (cell.status != CellStatus::Valid || cell.seconds <= 0) return refuse(record, cell.reasons);
    is_for_one_reason_ = false;
    merge_into(cell_.bins, cell.bins);
    add_figures(cell);
  }

  void refuse(const Record& record, const std::vector<std::string>& reasons) {
    is_for_one_reason_ = is_for_one_reason_ && reasons == first_reasons_;
    if (cell_.status == CellStatus::NotMeasured) return;
    if (cell_.status == CellStatus::Valid) cell_.status = CellStatus::Invalid;
    if (reasons.empty()) cell_.reasons.push_back(of_host(record, "not measured"));
    for (const std::string& reason : reasons) cell_.reasons.push_back(of_host(record, reason));
  }

  void finish() {
    cell_.memory.reset();  // of one host; its own record has it
    // As of the path that is staged to, on every host.
    if (cell_.status == CellStatus::NotMeasured && is_for_one_reason_) cell_.reasons = first_reasons_;
    if (cell_.status != CellStatus::Valid || cell_.seconds <= 0) return;
    const double seconds = cell_.seconds;
    cell_.bytes = rounded(bytes_.in(seconds)).value_or(0);
    cell_.ios = rounded(ios_.in(seconds)).value_or(0);
    cell_.opens = rounded(opens_.in(seconds));
    cell_.cpu_seconds = fio_cpu_.in(seconds).value_or(0);
    cell_.origin = {rounded(origin_.in(seconds)), join(counters_, ", "), rounded(nic_.in(seconds))};
    finish_cpu();
  }

 private:
  void add_figures(const Cell& cell) {
    const double seconds = cell.seconds;
    if (seconds <= 0) return;
    bytes_.add(std::optional(cell.bytes), seconds);
    ios_.add(std::optional(cell.ios), seconds);
    opens_.add(cell.opens, seconds);
    fio_cpu_.add(std::optional(cell.cpu_seconds), seconds);
    origin_.add(cell.origin.bytes, seconds);
    nic_.add(cell.origin.nic_bytes, seconds);
    const std::string& counter = cell.origin.counter;
    if (!counter.empty() && std::ranges::find(counters_, counter) == counters_.end())
      counters_.push_back(counter);
    const auto of_cpu = [&](double CpuUse::*member) {
      return cell.cpu ? std::optional(*cell.cpu.*member) : std::nullopt;
    };
    window_.add(of_cpu(&CpuUse::seconds), seconds);
    busy_.add(of_cpu(&CpuUse::busy_s), seconds);
    kernel_.add(of_cpu(&CpuUse::kernel_threads_s), seconds);
    idle_.add(of_cpu(&CpuUse::idle_share), 1);
    core_.add(of_cpu(&CpuUse::busiest_core), 1);
  }

  void finish_cpu() {
    const double seconds = cell_.seconds;
    const auto window = window_.in(seconds);
    cell_.cpu.reset();
    if (!window) return;
    cell_.cpu = CpuUse{*window, busy_.in(seconds).value_or(0), kernel_.in(seconds).value_or(0),
                       idle_.in(1).value_or(1), core_.in(1).value_or(0)};
  }

  Cell& cell_;
  std::vector<std::string> first_reasons_;  // without the host's name
  bool is_for_one_reason_ = true;           // no host has a result, and all for these reasons
  Mean bytes_, ios_, opens_, fio_cpu_, origin_, nic_;
  Mean window_, busy_, kernel_, idle_, core_;  // of the CPU counters
  std::vector<std::string> counters_;
};

IdleCpu mean_idle(const std::vector<Record>& records) {
  const auto hosts = static_cast<double>(records.size());
  double sum = 0, squares = 0;
  for (const Record& record : records) {
    sum += record.idle_cpu.cpu_s_per_s;
    squares += record.idle_cpu.error * record.idle_cpu.error;
  }
  return {sum / hosts, std::sqrt(squares) / hosts};
}

// The least of the values above 0; 0 if there is none.
void keep_least(Bytes& least, Bytes other) {
  if (other > 0 && (least == 0 || other < least)) least = other;
}

// What holds for one host only does not hold for all: a copy, room for one, rates without a limit.
void add_host(Record& merged, const Record& record) {
  merged.interrupted = merged.interrupted || record.interrupted;
  keep_least(merged.rate_limit, record.rate_limit);
  keep_least(merged.asked.cache_room, record.asked.cache_room);
  merged.asked.is_staged = merged.asked.is_staged && record.asked.is_staged;
  for (const std::string& warning : record.warnings) merged.warnings.push_back(of_host(record, warning));
  for (PathRecord& path : merged.paths) {
    const PathRecord* same = find_path(record, path.name);
    if (same == nullptr) continue;
    path.free = std::min(path.free, same->free);
    for (const std::string& note : same->notes) path.notes.push_back(of_host(record, note));
  }
}

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
  merged.idle_cpu = mean_idle(records);
  std::vector<std::map<CellName, const Cell*>> cells(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    merged.hosts.push_back(records[i].host.name);
    for (const Cell& cell : records[i].cells) cells[i][name_of(cell)] = &cell;
    if (i > 0) add_host(merged, records[i]);
  }
  for (Cell& cell : merged.cells) {
    CellMean mean(records.front(), cell);
    for (std::size_t i = 1; i < records.size(); ++i) {
      const auto other = cells[i].find(name_of(cell));
      if (other == cells[i].end()) {
        mean.refuse(records[i], {});
      } else {
        mean.add(records[i], *other->second);
      }
    }
    mean.finish();
  }
  add_overlaps(merged, records);
  return merged;
}

}  // namespace spark::bench
