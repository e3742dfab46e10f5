// What doctor found, as it is shown and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace spark::doctor {

enum class Level {
  Wrong,  // something does not work, or will fail: exit status 1
  Note,   // worth a look
};

// Three sentences: what is so, why it matters, and the command that mends it.
struct Finding {
  Level level = Level::Wrong;
  std::string area;  // "network", "fstab": a word
  std::string what, why, fix;
};

// The way to one target, as it is now.
struct NetworkWay {
  std::string target;              // the configuration's name, or the address and who names it
  std::string address;             // numeric
  std::string interface, gateway;  // empty gateway: in a network of this host's
  std::string speed;               // "200 Gb/s"
  unsigned megabits = 0;           // 0: the card does not tell
  unsigned mtu = 0;                // the card's
  unsigned packet = 0;             // the largest that came back, in bytes; 0: the target does not answer ping
  std::string carried_by;          // the card that took in what was read from the target; empty: nothing was
};

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> fine;     // what was looked at and is in order, a few words each
  std::vector<std::string> unknown;  // what could not be looked at, and why
  std::vector<NetworkWay> network;

  void wrong(std::string area, std::string what, std::string why, std::string fix);
  void note(std::string area, std::string what, std::string why, std::string fix);
  // `words` are fine if nothing was found since `before` findings.
  void fine_since(std::size_t before, std::string words);

  std::size_t count(Level level) const;
};

// {"wrong", "notes", "findings": [{"level", "area", "what", "why", "fix"}], "fine": […], "unknown": […],
// "network": [{"target", "address", "interface", "gateway", "speed", "megabits", "mtu", "packet",
// "carried_by"}]}
json::object to_json(const Report& report);

}  // namespace spark::doctor
