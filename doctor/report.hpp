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

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> fine;     // what was looked at and is in order, a few words each
  std::vector<std::string> unknown;  // what could not be looked at, and why

  void wrong(std::string area, std::string what, std::string why, std::string fix);
  void note(std::string area, std::string what, std::string why, std::string fix);
  // `words` are fine if nothing was found since `before` findings.
  void fine_since(std::size_t before, std::string words);

  std::size_t count(Level level) const;
};

// {"wrong", "notes", "findings": [{"level", "area", "what", "why", "fix"}], "fine": […], "unknown": […]}
json::object to_json(const Report& report);

}  // namespace spark::doctor
