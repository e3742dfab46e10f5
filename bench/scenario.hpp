// What is measured: each scenario is one shape of I/O that a training node really does.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::bench {

struct Scenario {
  std::string_view id;     // stable: stands in records and on the command line
  std::string_view title;  // for people
  std::string_view shape;  // block size and depth, for people
  std::string_view fio_rw;
  Bytes block;
  unsigned depth;    // I/Os in flight in each stream
  unsigned streams;  // threads, each in its own part of the data
  bool writes;
  bool counts_ios;  // its headline is I/Os per second, not bytes per second
};

// All of them, in the order in which they run and are shown.
std::span<const Scenario> all_scenarios();

// Invalid, with the nearest id or the list of them.
Result<const Scenario*> find_scenario(std::string_view id);

}  // namespace spark::bench
