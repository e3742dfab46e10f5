// Progress of a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/units.hpp"

namespace spark::staging {

enum class CopyPhase { Walking, Copying, Flushing, Verifying, Publishing };
inline const char* to_string(CopyPhase phase) {
  static constexpr const char* kWords[] = {"walking", "copying", "flushing", "verifying", "publishing"};
  return kWords[static_cast<std::size_t>(phase)];
}

// A snapshot, reported about four times a second from one thread.
struct CopyProgress {
  CopyPhase phase = CopyPhase::Walking;
  Bytes bytes_done = 0, bytes_total = 0;
  // Bytes copied by this run: read from the source, and received from other hosts.
  Bytes bytes_from_volume = 0, bytes_from_peers = 0;
  std::uint64_t files_done = 0, files_total = 0;
  double seconds = 0;
  Bytes bytes_per_second = 0;   // over the last seconds
  std::optional<double> eta_s;  // only decreases unless the run stalls; none means unknown
  std::string bottleneck;  // "source", "local drive", "small files", "hash", "throttle"; empty means none now
  std::string reason;      // why it waits; empty means that it does not wait
};
using ProgressSink = std::function<void(const CopyProgress&)>;

}  // namespace spark::staging
