#include "daemon/volumes/history.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace spark::volumes {
namespace {

std::int64_t milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

WallTime time_of(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

}  // namespace

const char* to_string(Healer healer) {
  return healer == Healer::Kernel ? "kernel" : "spark-stage";
}

void Latencies::add(double us) {
  ring_[added_++ % kKept] = us;
  sum_us_ += us;
}

std::optional<double> Latencies::last() const {
  if (added_ == 0) return std::nullopt;
  return ring_[(added_ - 1) % kKept];
}

std::optional<double> Latencies::percentile(double part) const {
  if (added_ == 0) return std::nullopt;
  const std::size_t count = std::min(added_, kKept);
  std::vector<double> sorted(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(count));
  std::ranges::sort(sorted);
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(count)));
  return sorted[std::clamp<std::size_t>(rank, 1, count) - 1];
}

void History::outage_begins(WallTime now, const std::string& reason) {
  if (is_out()) return;
  outages_.push_back({now, std::nullopt, reason, std::nullopt});
  ++outage_count_;
  if (outages_.size() > kKept) outages_.pop_front();
}

void History::outage_ends(WallTime now, std::optional<Healer> healer) {
  if (!is_out()) return;
  outages_.back().ended = std::max(now, outages_.back().began);  // the clock may have been set back
  outages_.back().healer = healer;
  if (healer == Healer::Kernel) ++reconnects_;
  if (healer == Healer::Us) ++recoveries_;
}

std::optional<double> History::last_outage_s() const {
  for (auto outage = outages_.rbegin(); outage != outages_.rend(); ++outage) {
    if (outage->ended) return std::chrono::duration<double>(*outage->ended - outage->began).count();
  }
  return std::nullopt;
}

json::object History::to_json() const {
  json::array outages;
  for (const Outage& outage : outages_) {
    outages.push_back(
        json::object{{"began_ms", milliseconds(outage.began)},
                     {"ended_ms", outage.ended ? json::value(milliseconds(*outage.ended)) : json::value()},
                     {"reason", outage.reason},
                     {"healer", outage.healer ? json::value(to_string(*outage.healer)) : json::value()}});
  }
  return {{"reconnects", reconnects_},
          {"recoveries", recoveries_},
          {"outage_count", outage_count_},
          {"outages", std::move(outages)}};
}

History History::from_json(const json::object& object) {
  History history;
  history.reconnects_ = static_cast<std::uint64_t>(get_int(object, "reconnects").value_or(0));
  history.recoveries_ = static_cast<std::uint64_t>(get_int(object, "recoveries").value_or(0));
  const json::array* outages = get_array(object, "outages");
  if (outages == nullptr) return history;
  for (const json::value& value : *outages) {
    const json::object* one = value.if_object();
    const auto began = one == nullptr ? std::nullopt : get_int(*one, "began_ms");
    if (!began) continue;
    Outage outage{time_of(*began), std::nullopt, get_text(*one, "reason"), std::nullopt};
    if (const auto ended = get_int(*one, "ended_ms")) outage.ended = time_of(*ended);
    const auto healer = get_string(*one, "healer");
    if (healer == to_string(Healer::Kernel)) outage.healer = Healer::Kernel;
    if (healer == to_string(Healer::Us)) outage.healer = Healer::Us;
    history.outages_.push_back(std::move(outage));
  }
  // An older record without a count has at least these.
  const auto counted = static_cast<std::uint64_t>(get_int(object, "outage_count").value_or(0));
  history.outage_count_ = std::max<std::uint64_t>(counted, history.outages_.size());
  return history;
}

}  // namespace spark::volumes
