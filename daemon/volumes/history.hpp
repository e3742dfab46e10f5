// A volume's health history: the latencies of superblock reads, and its outages. The outages survive a
// restart of the daemon.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"

namespace spark::volumes {

// The latest latencies, in microseconds.
class Latencies {
 public:
  void add(double us);
  std::optional<double> last() const;
  // Nearest rank; `part` between 0 and 1. None before the first.
  std::optional<double> percentile(double part) const;
  // Of all values ever added.
  std::size_t count() const { return added_; }
  double sum_us() const { return sum_us_; }

 private:
  static constexpr std::size_t kKept = 256;
  std::array<double, kKept> ring_{};
  std::size_t added_ = 0;
  double sum_us_ = 0;
};

// The link came back under the same mount, or the daemon reconnected or remounted.
enum class Healer { Kernel, Us };
const char* to_string(Healer healer);

struct Outage {
  WallTime began;
  std::optional<WallTime> ended;  // none while it lasts
  std::string reason;
  std::optional<Healer> healer;  // none: not over yet, or a person took the volume down
};

class History {
 public:
  // No effect if an outage is already in progress, or has already ended.
  void outage_begins(WallTime now, const std::string& reason);
  void outage_ends(WallTime now, std::optional<Healer> healer);
  bool is_out() const { return !outages_.empty() && !outages_.back().ended; }

  std::uint64_t reconnects() const { return reconnects_; }        // outages ended by the kernel, in total
  std::uint64_t recoveries() const { return recoveries_; }        // outages ended by the daemon
  std::uint64_t outage_count() const { return outage_count_; }    // outages started
  const std::deque<Outage>& outages() const { return outages_; }  // the latest, oldest first
  std::optional<double> last_outage_s() const;                    // of the last outage that has ended

  json::object to_json() const;
  static History from_json(const json::object& object);

 private:
  static constexpr std::size_t kKept = 20;
  std::uint64_t reconnects_ = 0, recoveries_ = 0, outage_count_ = 0;
  std::deque<Outage> outages_;
};

}  // namespace spark::volumes
