#include "csi/progress.hpp"

#include <algorithm>
#include <cmath>

namespace spark::csi {
namespace {

std::string time_in_words(double seconds) {
  const auto whole = static_cast<long>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 120) return std::to_string(whole) + " s";
  if (whole < 7200) return std::to_string((whole + 59) / 60) + " min";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

}  // namespace

std::string progress_in_words(const std::string& dataset, const json::object& progress) {
  const std::string phase = get_string(progress, "phase").value_or("queued");
  const std::string reason = get_text(progress, "reason");
  const double total = get_double(progress, "bytes_total").value_or(0);
  const double done = get_double(progress, "bytes_done").value_or(0);
  std::string words = dataset + ": ";
  if (total > 0) {
    words += std::to_string(static_cast<long>(std::clamp(done / total, 0.0, 1.0) * 100)) + " %";
    if (phase != "copying") words += ", " + phase;
    const auto left = get_double(progress, "eta_s");
    if (left && *left > 0 && phase == "copying") words += ", " + time_in_words(*left) + " left";
  } else {
    words += phase;
  }
  return reason.empty() ? words : words + ": " + reason;
}

}  // namespace spark::csi
