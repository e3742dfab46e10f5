// The findings of doctor, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace spark::doctor {

enum class Level {
  Wrong,  // something does not work, or will fail: exit status 1
  Note,   // worth a look
};

// Three sentences: the finding, its effect, and the command that fixes it.
struct Finding {
  Level level = Level::Wrong;
  std::string area;  // "network", "fstab": a word
  std::string what, why, fix;
};

// The way to one target, as it is now.
struct NetworkWay {
  std::string target;              // the configured name, or the address and its origin
  std::string address;             // numeric
  std::string interface, gateway;  // empty gateway: in a network of this host's
  std::string speed;               // "200 Gb/s"
  unsigned megabits = 0;           // 0: the card does not tell
  unsigned mtu = 0;                // the card's
  unsigned packet = 0;     // the largest that came back, in bytes; 0: the target does not answer large pings
  std::string carried_by;  // the card that received the data read from the target; empty: none was read
};

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> fine;     // checked and in order, a few words each
  std::vector<std::string> unknown;  // not checked, with the reason
  std::vector<NetworkWay> network;
  // To peers, if they were tested, for `fleet test --json` and the screens: {"peer", "address", "interface",
  // "megabits", "mtu", "packet", "peer_interface", "peer_megabits", "received_bytes_per_second",
  // "sent_bytes_per_second", "own_busy", "peer_busy" (see fleet::busy_share), "faults"}; numbers are null if
  // they are unknown.
  std::vector<json::object> links;

  void wrong(std::string area, std::string what, std::string why, std::string fix);
  void note(std::string area, std::string what, std::string why, std::string fix);
  // `words` are fine if nothing was found since `before` findings.
  void fine_since(std::size_t before, std::string words);

  std::size_t count(Level level) const;
};

// {"wrong", "notes", "findings": [{"level", "area", "what", "why", "fix"}], "fine": […], "unknown": […],
// "network": [{"target", "address", "interface", "gateway", "speed", "megabits", "mtu", "packet",
// "carried_by"}]}, and "links" if there are any
json::object to_json(const Report& report);

}  // namespace spark::doctor
