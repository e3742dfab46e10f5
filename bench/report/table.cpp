#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "bench/record/words.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

constexpr std::size_t kTableWidth = 80;
constexpr std::size_t kLabelWidth = 19;
constexpr std::size_t kNarrowest = 12;  // width of a path's column
constexpr std::size_t kGap = 2;

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t shown = display_width(text);
  return text + std::string(shown < width ? width - shown : 0, ' ');
}

// One path in one scenario; one text per line.
using Column = std::array<std::string, 5>;
constexpr std::array<const char*, 5> kLabels = {"  median", "  min to max", "  p50 / p99",
                                                "  free after load", "  CPU s/GB, source"};

class Table {
 public:
  explicit Table(const Record& record) : record_(record) {}

  std::string render() {
    head();
    out_ += "\n";
    for (const std::string& sentence : sentences_of(verdict_of(record_)))
      out_ += wrapped(printable(sentence), 2);
    fill();
    for (std::size_t first = 0, end = 0; first < record_.paths.size(); first = end) {
      end = last_of_group(first);
      group(first, end);
    }
    paths();
    notes();
    return std::move(out_);
  }

 private:
  void head() {
    out_ += wrapped("spark-stage bench " + record_.run_id + " on " + printable(record_.host.name) + ": " +
                        record_.fio.version + " with " + record_.fio.engine + ", Linux " +
                        printable(record_.host.kernel) + ", " + std::to_string(record_.host.cpus) +
                        " CPUs, " + format_bytes(record_.host.memory_bytes) + " of memory",
                    2);
    std::string how = format_duration(record_.runtime) + " a cell, a round to warm up, ";
    how += record_.rounds == 1 ? "one round: no spread is known"
                               : "figures of " + rounds_text(record_) + " rounds";
    if (record_.paths.size() > 1) {
      how += "; x: the median by that of " + record_.paths[baseline_of(record_)].name +
             ", ≈: no clear difference, ?: too few rounds to tell, [n]: a remark below";
    }
    out_ += wrapped(how, 2);
    if (record_.rate_limit > 0) {
      out_ += "held to " + format_rate(static_cast<double>(record_.rate_limit)) + " (--rate-limit)\n";
    }
    if (record_.interrupted) out_ += "INTERRUPTED: only the measurements until then\n";
  }

  void fill() {
    columns_.resize(record_.paths.size());
    for (const ScenarioRecord& scenario : record_.scenarios) {  // remarks are numbered line by line
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        columns_[i].push_back(column_of(record_.paths[i], scenario));
      }
    }
  }

  // As wide as the widest text: only a path's name is ever cut.
  std::size_t width_of(std::size_t path) const {
    std::size_t width = kNarrowest;
    for (const Column& column : columns_[path]) {
      for (const std::string& text : column) width = std::max(width, display_width(text));
    }
    return width + kGap;
  }

  std::size_t last_of_group(std::size_t first) const {
    std::size_t used = kLabelWidth + width_of(first);
    std::size_t end = first + 1;
    while (end < columns_.size() && used + width_of(end) - kGap <= kTableWidth) used += width_of(end++);
    return end;
  }

  void group(std::size_t first, std::size_t end) {
    std::string line(kLabelWidth, ' ');
    for (std::size_t i = first; i < end; ++i) {
      line += padded(cut_short(record_.paths[i].name, width_of(i) - kGap), width_of(i));
    }
    out_ += "\n";
    end_line(line);
    for (std::size_t i = 0; i < record_.scenarios.size(); ++i) rows(i, first, end);
  }

  void rows(std::size_t number, std::size_t first, std::size_t end) {
    const ScenarioRecord& scenario = record_.scenarios[number];
    out_ += cut_short(scenario.id + ": " + scenario.title + ", " + scenario.shape + ", " +
                          to_string(scenario.cache),
                      kTableWidth) +
            "\n";
    for (std::size_t row = 0; row < kLabels.size(); ++row) {
      std::string line = padded(kLabels[row], kLabelWidth);
      bool has_text = false;
      for (std::size_t i = first; i < end; ++i) {
        const std::string& text = columns_[i][number][row];
        has_text = has_text || !text.empty();
        line += padded(text, width_of(i));
      }
      if (has_text) end_line(line);
    }
  }

  void end_line(const std::string& line) { out_ += line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; }

  Column column_of(const PathRecord& path, const ScenarioRecord& scenario) {
    const Summary summary = summarize(record_, path.name, scenario.id);
    const std::vector<double> values = summary.headlines();
    if (values.empty()) return {why_no_number(path, scenario, summary) + mark_of(summary), "", "", "", ""};
    std::string text = loaded_text(summary, scenario) + headline_text(median(values), scenario);
    if (const std::string ratio = ratio_to_baseline(record_, path, scenario); !ratio.empty())
      text += " " + ratio;
    return {text + mark_of(summary), range(values, scenario), latencies(summary), free_memory_text(summary),
            source(summary)};
  }

  static std::string range(const std::vector<double>& values, const ScenarioRecord& scenario) {
    if (values.size() < 2) return "";
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return range_text(*low, *high, scenario);
  }

  static std::string latencies(const Summary& summary) {
    if (summary.bins.empty()) return "";
    return latency_text(percentile(summary.bins, 50)) + " / " + latency_text(percentile(summary.bins, 99));
  }

  // "0.21, cold 99.8 %"
  static std::string source(const Summary& summary) {
    const std::string& cache = summary.cache;
    const std::string words = cache.starts_with("served by") ? "from RAM"
                              : cache.starts_with("partly")  ? "partly RAM"
                                                             : cache;
    return small_number(summary.cpu_per_gb) + ", " + words;
  }

  // "[2]" for reasons listed below the table; equal reasons share a number.
  std::string mark_of(const Summary& summary) {
    const std::vector<std::string> remarks = remarks_of(summary);
    if (remarks.empty()) return "";
    const std::string text = join(remarks, "; ");
    auto at = std::find(footnotes_.begin(), footnotes_.end(), text);
    if (at == footnotes_.end()) at = footnotes_.insert(footnotes_.end(), text);
    return " [" + std::to_string(at - footnotes_.begin() + 1) + "]";
  }

  void paths() {
    out_ += "\n";
    for (const PathRecord& path : record_.paths) {
      std::string text = path.name + ": " + printable(path.path);
      if (path.mount) {
        text += " (" + printable(path.mount->source) + " " + path.mount->type + " " +
                printable(path.mount->options) + ")";
      }
      text += what_was_used(path);
      out_ += wrapped(text, 2);
      for (const std::string& note : path.notes)
        out_ += wrapped("  " + path.name + ": " + printable(note), 4);
    }
  }

  static std::string what_was_used(const PathRecord& path) {
    Bytes bytes = 0;
    for (const DataFile& file : path.files) bytes += file.bytes;
    if (path.files.empty()) return "";
    if (path.read_only_reason.empty()) {
      return path.unusable.empty() ? ", wrote and read " + format_bytes(bytes) + " of its own"
                                   : ", could not be measured to the end: " + printable(path.unusable);
    }
    return ", read " + std::to_string(path.files.size()) +
           (path.files.size() == 1 ? " existing file of " : " existing files of ") + format_bytes(bytes) +
           " (" + path.read_only_reason + ")";
  }

  void notes() {
    for (std::size_t i = 0; i < footnotes_.size(); ++i) {
      out_ += wrapped("[" + std::to_string(i + 1) + "] " + printable(footnotes_[i]), 4);
    }
    for (const std::string& warning : record_.warnings) out_ += wrapped("warning: " + printable(warning), 2);
    out_ += wrapped(
        "-: too few samples, or no more CPU than an idle host uses. Not known: how much a target served from "
        "its "
        "own "
        "memory, and the load from other clients.",
        2);
  }

  const Record& record_;
  std::string out_;
  std::vector<std::vector<Column>> columns_;  // for each path, by scenario
  std::vector<std::string> footnotes_;
};

}  // namespace

std::string text_table(const Record& record) {
  return Table(record).render();
}

std::string json_text(const Record& record) {
  return pretty(to_json(record)) + "\n";
}

}  // namespace spark::bench
