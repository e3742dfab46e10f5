// A server's work since its start, by client, and the hosts that it refused lately.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/units.hpp"

namespace spark::fleet {

// Unlisted: its address belongs to no peer. Key: it has not shown that it has the fleet's key. Share: it has
// as many connections as one host may have.
enum class Refusal { Unlisted, Key, Share };
inline constexpr std::size_t kRefusals = 3;

// Thread-safe. A client is an address.
class ServedCounts {
 public:
  void connected();
  void sent(const std::string& client, Bytes bytes);
  void failed(const std::string& client);  // a unit that could not be read, or not be sent to its end
  void refused(const std::string& address, Refusal why, SteadyTime now);

  // {"served_bytes", "served_units", "connections", "refused", "refused_by": {"unlisted", "key", "share"},
  //  "refused_hosts": [{"address", "reason"}…] of the last minutes,
  //  "clients": [{"address", "bytes", "failures"}…]}
  json::object report(SteadyTime now) const;

 private:
  struct Client {
    Bytes bytes = 0;
    std::uint64_t units = 0, failures = 0;
  };

  mutable std::mutex mutex_;  // guards everything below
  std::uint64_t connections_ = 0;
  std::array<std::uint64_t, kRefusals> refused_{};
  std::map<std::pair<std::string, Refusal>, SteadyTime> refused_hosts_;  // the last time
  std::map<std::string, Client> clients_;
};

}  // namespace spark::fleet
