#include "cli/view/progress_view.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::chrono::seconds kPlainInterval{5}, kSameLine{300};  // an outage may last for hours
constexpr std::size_t kMaxBars = 10;  // the newest; older ones would scroll out of a small terminal
constexpr std::size_t kLongestBar = 30, kShortestBar = 6, kLongestName = 20;
// "100 %  12.3 GB of 1.23 TB  12.3 GB/s, 1 h 05 min left": the bar keeps its length while these change.
constexpr std::size_t kTail = 54;

std::string bar(const Progress& progress, std::size_t width) {
  const auto full = static_cast<std::size_t>(part_done(progress) * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "]";
}

bool moves_bytes(const Progress& progress) {
  return progress.phase == "copying" || progress.phase == "verifying" || progress.phase == "stalled";
}

// For room in the cache.
bool is_waiting(const Progress& progress) {
  return progress.phase == "walking" && !progress.reason.empty();
}

std::string phase_of(const Progress& progress, const Eta& eta, SteadyTime now) {
  return moves_bytes(progress) && eta.is_stalled(now) ? "stalled" : progress.phase;
}

// The least important last: a narrow terminal loses it first.
std::vector<std::string> details(const Progress& progress, const Eta& eta, SteadyTime now) {
  if (phase_of(progress, eta, now) == "stalled") {
    return {progress.reason.empty() ? "nothing moves" : printable(progress.reason)};
  }
  const double rate = progress.bytes_per_second > 0 ? progress.bytes_per_second : eta.bytes_per_second();
  std::vector<std::string> parts;
  if (rate > 0) parts.push_back(format_rate(rate));
  const auto told = told_left(progress), left = told ? told : eta.left(now);
  if (left) parts.push_back(format_left(*left) + " left");
  if (progress.late_s)
    parts.push_back(format_left(std::chrono::seconds(static_cast<std::int64_t>(*progress.late_s))) +
                    " too late");
  if (!progress.bottleneck.empty()) parts.push_back("limited by: " + printable(progress.bottleneck));
  return parts;
}

std::string walked(const Progress& progress) {
  return counted(progress.files_total, "file") + ", " + format_bytes(progress.bytes_total) + " so far";
}

}  // namespace

std::string progress_in_words(const Progress& progress, const Eta& eta, SteadyTime now) {
  const std::string name = progress.dataset.empty() ? "" : printable(progress.dataset) + ": ";
  if (is_waiting(progress)) return name + "waiting: " + printable(progress.reason);
  std::string line = name + phase_of(progress, eta, now);
  if (progress.phase == "walking" && progress.files_total > 0) return line + ", " + walked(progress);
  if (progress.phase == "stalled" && progress.bytes_total == 0 && !progress.reason.empty())
    return line + ": " + printable(progress.reason);
  if (!moves_bytes(progress) || progress.bytes_total == 0) return line;
  if (progress.phase == "stalled") line += " at";
  const std::string tail = join(details(progress, eta, now), ", ");
  return line + " " + part_of(progress.bytes_done, progress.bytes_total) + " (" + percent_done(progress) +
         ")" + (tail.empty() ? "" : ", " + tail);
}

std::string ProgressView::bar_line(const Row& row, SteadyTime now) const {
  const Progress& progress = row.progress;
  const std::string phase = phase_of(progress, row.eta, now);
  std::string line = shorten(printable(progress.dataset), kLongestName);
  if (!line.empty()) line += "  ";
  if (is_waiting(progress)) return line + "waiting: " + printable(progress.reason);
  if (!moves_bytes(progress) && progress.phase != "walking") return line + phase;
  if (phase != "copying") line += phase + "  ";
  if (progress.phase == "walking") return line + walked(progress);
  const std::size_t used = display_width(line) + kTail + 4;  // brackets and gap
  if (used + kShortestBar < terminal_.columns) {
    line += bar(progress, std::min(kLongestBar, terminal_.columns - 1 - used)) + "  ";
  }
  const std::string percent = percent_done(progress);
  line += std::string(std::string_view("100 %").size() - percent.size(), ' ') + percent + "  " +
          part_of(progress.bytes_done, progress.bytes_total);
  std::string_view before = "  ";
  for (const std::string& detail : details(progress, row.eta, now)) {
    const bool is_reason = progress.phase == "stalled";  // cut short it still tells something
    if (!is_reason && display_width(line) + before.size() + display_width(detail) >= terminal_.columns) break;
    (line += before) += detail;
    before = ", ";
  }
  return line;
}

void ProgressView::update(const Progress& progress) {
  if (terminal_.is_quiet) return;
  const SteadyTime now = clock_.steady();
  const auto [entry, is_new] = rows_.try_emplace(progress.dataset);
  if (is_new) order_.push_back(progress.dataset);
  Row& row = entry->second;
  if (row.progress.phase != progress.phase && progress.phase != "stalled") row.eta = Eta();
  row.progress = progress;
  if (moves_bytes(progress)) row.eta.update(now, progress.bytes_done, progress.bytes_total);
  if (terminal_.err) {
    erase_bars();
    draw_bars(now);
    err_.flush();
    return;
  }
  const std::string phase = phase_of(progress, row.eta, now);
  if (row.printed_phase == phase && now - row.printed < kPlainInterval) return;
  const std::string line = progress_in_words(row.progress, row.eta, now);
  if (row.printed_line == line && now - row.printed < kSameLine) return;
  err_ << line << std::endl;
  row.printed_line = line;
  row.printed = now;
  row.printed_phase = phase;
}

void ProgressView::note(const std::string& words) {
  if (terminal_.is_quiet) return;
  erase_bars();
  err_ << cli::sentence(words, terminal_.columns, terminal_.err);
  if (terminal_.err) draw_bars(clock_.steady());
  err_.flush();
}

void ProgressView::clear() {
  erase_bars();
  rows_.clear();
  order_.clear();
}

void ProgressView::erase_bars() {
  if (drawn_ > 0) err_ << "\x1b[" << drawn_ << "A\r\x1b[J";
  drawn_ = 0;
}

void ProgressView::draw_bars(SteadyTime now) {
  const std::size_t first = order_.size() - std::min(order_.size(), kMaxBars);
  for (std::size_t i = first; i < order_.size(); ++i) {
    err_ << cut_short(bar_line(rows_.at(order_[i]), now), terminal_.columns - 1) << "\n";
    ++drawn_;
  }
}

}  // namespace spark::cli
