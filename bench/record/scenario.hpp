// What is measured: each scenario is one shape of I/O that a training node really does.
#pragma once

#include <span>
#include <string>
#include <string_view>

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
  Warm,    // as the measurement before left the page cache; only in records of earlier versions
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
  bool counts_ios = false;  // its headline is I/Os (files) per second, not bytes per second
  bool at_demand = false;   // throttled to what the job consumes; only with a demand
};

// All of them, in the order in which they run and are shown.
std::span<const Scenario> all_scenarios();

// Invalid, with the nearest name or the list, where there is none of that id.
Result<const Scenario*> find_scenario(std::string_view id);

const char* to_string(Cache cache);

}  // namespace spark::bench
