// What all parts of one simulated world share: its time, its chance, its story and its judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/histories/engine/history.hpp"
#include "tests/histories/engine/virtual_time.hpp"

namespace spark::histories {

// The same numbers for the same seed, on every host (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // 0 … limit - 1; the bias is of no importance.
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(next() % limit); }
  bool is_one_in(std::uint32_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

// Who did something to a host.
enum class Actor { Daemon, Program, Fault };

// Collects the first broken promise.
class Judge {
 public:
  void broken(std::string oracle, std::string what) {
    if (first_) return;
    if (!root_cause_.empty()) what.insert(0, oracle + ": ");
    first_ = Violation{root_cause_.empty() ? std::move(oracle) : root_cause_, std::move(what)};
  }
  // Every broken promise of this world counts as this one.
  void blame(std::string root_cause) { root_cause_ = std::move(root_cause); }
  const std::optional<Violation>& first() const { return first_; }

 private:
  std::string root_cause_;
  std::optional<Violation> first_;
};

struct Scene {
  VirtualTime& time;
  Random& random;
  Judge& judge;
  const Story& story;

  // With the virtual time.
  void tell(const std::string& sentence) const;
  bool is_told() const { return story.is_told(); }
};

// "12.345 s"
std::string since_start(const VirtualTime& time);

}  // namespace spark::histories
