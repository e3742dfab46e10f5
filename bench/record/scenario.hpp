// What is measured: each scenario is one shape of I/O that a training node really does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::bench {

enum class Method {
  Fio,    // fio on the large file, or on existing ones
  Files,  // whole small files: open, read, close, as a data loader does
  Copy,   // our own engine, from the path to the local drive
};

// What stands between the storage and the reader.
enum class Cache {
  Direct,  // page cache bypassed
  Cold,    // through the page cache, emptied of these files before
  Warm,    // through the page cache, as the measurement before left it
};

struct Scenario {
  std::string_view id;     // stable: stands in records and on the command line
  std::string_view title;  // for people
  std::string_view shape;  // block size and depth, for people
  Method method;
  Cache cache;
  std::string_view fio_rw;
  Bytes block;
  unsigned depth;    // I/Os in flight in each stream
  unsigned streams;  // threads, each in its own part of the data
  bool writes = false;
  bool counts_ios = false;        // its headline is I/Os (files) per second, not bytes per second
  bool at_demand = false;         // throttled to what the job consumes; only with a demand
  std::string_view part_of = {};  // the name under which it is chosen, when that is not its id
};

// All of them, in the order in which they run and are shown.
std::span<const Scenario> all_scenarios();

// What `name` stands for: one scenario, or the parts of one. Invalid, with the nearest name or the list.
Result<std::vector<const Scenario*>> find_scenarios(std::string_view name);

const char* to_string(Cache cache);

}  // namespace spark::bench
