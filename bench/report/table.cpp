#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "bench/record/words.hpp"
#include "bench/report/report.hpp"
#include "bench/verdict/verdict.hpp"

namespace spark::bench {
namespace {

constexpr std::size_t kLabelWidth = 20;
constexpr std::size_t kCellWidth = 20;
constexpr std::size_t kPathsAbreast = 3;

std::string padded(const std::string& text, std::size_t width) {
  const std::string shown = cut_short(text, width - 1);
  return shown + std::string(width - display_width(shown), ' ');
}

void end_line(std::string& line, std::string& out) {
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  line.clear();
}

// One scenario's figures of one path.
struct Figures {
  Summary summary;
  std::vector<double> headline;  // I/Os or bytes per second of each valid round
};

Figures figures_of(const Record& record, const PathRecord& path, const ScenarioRecord& scenario) {
  Figures figures;
  figures.summary = summarize(record, path.name, scenario.id);
  figures.headline = figures.summary.headlines();
  return figures;
}

class Table {
 public:
  explicit Table(const Record& record) : record_(record) {}

  std::string render() {
    head();
    out_ += "\n";
    for (const std::string& sentence : sentences_of(verdict_of(record_)))
      out_ += wrapped(printable(sentence), 2);
    for (std::size_t first = 0; first < record_.paths.size(); first += kPathsAbreast) {
      group(first, std::min(first + kPathsAbreast, record_.paths.size()));
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
                        " CPUs, " + format_bytes(record_.host.memory) + " of memory",
                    2);
    std::string how = format_duration(record_.runtime) + " a cell, a round to warm up, ";
    how += record_.rounds == 1
               ? "one round: no spread is known"
               : "median and (range) of " + std::to_string(record_.rounds) + " rounds or more";
    if (record_.paths.size() > 1) {
      how += "; x is the ratio to " + record_.paths[baseline_of(record_)].name + ", ≈ no clear difference";
    }
    out_ += wrapped(how, 2);
    if (record_.rate_limit > 0) {
      out_ += "held to " + format_rate(static_cast<double>(record_.rate_limit)) + " (--rate-limit)\n";
    }
    if (record_.interrupted) out_ += "INTERRUPTED: what was measured until then\n";
  }

  void group(std::size_t first, std::size_t end) {
    out_ += "\n";
    std::string line(kLabelWidth, ' ');
    for (std::size_t i = first; i < end; ++i) line += padded(record_.paths[i].name, kCellWidth);
    end_line(line, out_);
    for (const ScenarioRecord& scenario : record_.scenarios) row(scenario, first, end);
  }

  void row(const ScenarioRecord& scenario, std::size_t first, std::size_t end) {
    const double baseline =
        median(figures_of(record_, record_.paths[baseline_of(record_)], scenario).headline);
    std::array<std::string, 4> lines = {
        padded(scenario.title, kLabelWidth), padded("  " + scenario.shape, kLabelWidth),
        padded("  p50 / p99", kLabelWidth), padded("  CPU s/GB, source", kLabelWidth)};
    for (std::size_t i = first; i < end; ++i) {
      const Figures figures = figures_of(record_, record_.paths[i], scenario);
      lines[0] += padded(headline(record_.paths[i], scenario, baseline), kCellWidth);
      lines[1] += padded(range(figures, scenario), kCellWidth);
      lines[2] += padded(latencies(figures), kCellWidth);
      lines[3] += padded(source(figures), kCellWidth);
    }
    for (std::string& line : lines) end_line(line, out_);
  }

  std::string headline(const PathRecord& path, const ScenarioRecord& scenario, double baseline) {
    const Figures figures = figures_of(record_, path, scenario);
    if (figures.headline.empty()) return why_none(path, scenario, figures.summary) + mark_of(figures.summary);
    std::string text = headline_text(median(figures.headline), scenario);
    const PathRecord& other = record_.paths[baseline_of(record_)];
    if (other.name != path.name && baseline > 0) {
      const PairedComparison compared =
          compare_summaries(figures_of(record_, other, scenario).summary, figures.summary);
      text += " " + ratio_text(compared, median(figures.headline) / baseline);
    }
    return text + mark_of(figures.summary);
  }

  static std::string why_none(const PathRecord& path, const ScenarioRecord& scenario,
                              const Summary& summary) {
    if (summary.status == CellStatus::Invalid) return "invalid ";
    if (scenario.writes && path.unusable.empty() && !path.read_only_reason.empty()) return "read-only ";
    return "not measured ";
  }

  std::string range(const Figures& figures, const ScenarioRecord& scenario) const {
    if (figures.headline.size() < 2) return "";
    const auto [low, high] = std::minmax_element(figures.headline.begin(), figures.headline.end());
    if (scenario.counts_ios) return "(" + count_text(*low) + "-" + count_text(*high) + ")";
    const std::string from = format_rate(*low);
    const std::string to = format_rate(*high);
    const std::string unit = from.substr(from.find(' '));
    // "(2.31-2.55 GB/s)", or "(980 MB-1.02 GB/s)" across a unit.
    const bool same = to.ends_with(unit);
    return "(" + from.substr(0, from.size() - (same ? unit.size() : 2)) + "-" + to + ")";
  }

  static std::string latencies(const Figures& figures) {
    if (figures.summary.bins.empty()) return "";
    return latency_text(percentile(figures.summary.bins, 50)) + " / " +
           latency_text(percentile(figures.summary.bins, 99));
  }

  // "0.21, cold 99.8 %"
  static std::string source(const Figures& figures) {
    if (figures.headline.empty()) return "";
    const std::string& cache = figures.summary.cache;
    const std::string words = cache.starts_with("served by") ? "from RAM"
                              : cache.starts_with("partly")  ? "partly RAM"
                                                             : cache;
    return small_number(figures.summary.cpu_per_gb) + ", " + words;
  }

  // "[2]" for reasons that stand below the table; the same reasons share a mark.
  std::string mark_of(const Summary& summary) {
    std::vector<std::string> remarks = summary.reasons;
    if (!remarks.empty() && !summary.rates.empty()) remarks[0] = "not every round is valid: " + remarks[0];
    remarks.insert(remarks.end(), summary.cautions.begin(), summary.cautions.end());
    if (remarks.empty()) return "";
    const std::string text = join(remarks, "; ");
    auto at = std::find(footnotes_.begin(), footnotes_.end(), text);
    if (at == footnotes_.end()) at = footnotes_.insert(footnotes_.end(), text);
    return "[" + std::to_string(at - footnotes_.begin() + 1) + "]";
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
      return ", wrote and read " + format_bytes(bytes) + " of its own, and removed it";
    }
    return ", read " + std::to_string(path.files.size()) + " existing files of " + format_bytes(bytes) +
           " (" + path.read_only_reason + ")";
  }

  void notes() {
    for (std::size_t i = 0; i < footnotes_.size(); ++i) {
      out_ += wrapped("[" + std::to_string(i + 1) + "] " + printable(footnotes_[i]), 4);
    }
    for (const std::string& warning : record_.warnings) out_ += wrapped("warning: " + printable(warning), 2);
    out_ += wrapped(
        "- stands for too few samples, or CPU use not above an idle host's. What this can't tell: whether a "
        "target served from its own "
        "memory, and what other clients did meanwhile.",
        2);
  }

  const Record& record_;
  std::string out_;
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
