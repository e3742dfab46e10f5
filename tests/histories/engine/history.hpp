// A history: a seed, which shapes the world at its start, and the steps taken in it. The real logic runs in a
// world that remembers the truth; oracles compare the two after each step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::histories {

// All randomness of a step is in its dice, so that other steps may be removed before it. A world takes them
// modulo what is possible when the step is taken; a step that is not possible then does nothing.
struct Step {
  std::string action;
  std::array<std::uint32_t, 4> dice{};

  bool operator==(const Step&) const = default;
};

struct History {
  std::uint64_t seed = 0;
  std::vector<Step> steps;

  bool operator==(const History&) const = default;
};

// A broken promise. `oracle` is its name, the same for each way to break it: "two-writers".
struct Violation {
  std::string oracle, what;
};

// What happens in a history, in sentences; kept only for a replay.
class Story {
 public:
  explicit Story(std::function<void(const std::string&)> told = {}) : told_(std::move(told)) {}

  bool is_told() const { return static_cast<bool>(told_); }
  void tell(const std::string& sentence) const {
    if (told_) told_(sentence);
  }

 private:
  std::function<void(const std::string&)> told_;
};

class World {
 public:
  virtual ~World() = default;

  // Takes the step, and lets some virtual time pass; tells what it did.
  virtual void take(const Step& step) = 0;
  // The first promise that is broken now.
  virtual std::optional<Violation> check() = 0;
  // Ends all faults, lets virtual time pass, and checks what must hold then.
  virtual std::optional<Violation> settle() = 0;
  virtual Duration elapsed() const = 0;  // virtual time since the start
};

struct Action {
  std::string name;
  unsigned weight = 1;  // relative to the other actions
};

// What a history machine is made of.
struct Area {
  std::string name;  // "volumes"
  std::vector<Action> actions;
  unsigned longest = 30;  // steps of a history; a seed chooses a number from a third of it on
  std::function<std::unique_ptr<World>(std::uint64_t seed, const Story& story)> make;
  // An oracle of an open defect hides other defects with its name, so it may claim only this share of seeds.
  double most_claimed = 0.02;
};

// The history of a seed: the same on every host.
History generate(const Area& area, std::uint64_t seed);

struct Outcome {
  std::optional<Violation> violation;
  std::size_t taken = 0;  // steps until then
  Duration elapsed{0};
};

// An exception that leaves the world is a violation of the oracle "exception".
Outcome run(const Area& area, const History& history, const Story& story = Story());

// Removes steps, and lowers dice, while the history still violates the same oracle. At most `tries` histories
// are run, and none begins when `may_go_on` says no.
History shrink(const Area& area, History history, const std::string& oracle, unsigned tries = 3000,
               const std::function<bool()>& may_go_on = {});

// The text form, for files: "seed 7", then a line for each step.
std::string to_text(const History& history);
// Lines that begin with # are comments.
Result<History> from_text(const std::string& text);

}  // namespace spark::histories
