// The scenarios: each is one I/O pattern of a real training node.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::bench {

enum class Method {
  Fio,    // fio on the large files, or on existing ones
  Files,  // whole small files: open, read, close, like a data loader
  Copy,   // the copy engine, from the path to the local drive
  Load,   // weights, like a program that loads a model; only when asked for
};

enum class LoadWay { Mapped, Buffered, Direct };

// The cache between the storage and the reader.
enum class Cache {
  Direct,  // page cache bypassed
  Cold,    // through the page cache, after the files were evicted from it
  Warm,    // page cache as left by the previous measurement; only in records of earlier versions
};

// What a record has of a scenario.
struct ScenarioRecord {
  std::string id;     // stable: used in records and on the command line
  std::string title;  // for users
  std::string shape;  // block size and depth, for users
  bool writes = false;
  bool counts_ios = false;  // the headline is I/Os (files) per second, not bytes per second
  Cache cache = Cache::Direct;
};

struct Scenario : ScenarioRecord {
  Method method;
  std::string_view fio_rw;
  Bytes block;
  unsigned depth;          // I/Os in flight in each stream
  unsigned streams;        // threads, each on its own part of the data
  bool at_demand = false;  // throttled to the job's rate; only with a demand
  LoadWay way = LoadWay::Buffered;
};

// In the order in which they run and are shown.
std::span<const Scenario> all_scenarios();

// Invalid, with the nearest match or the list, if no scenario has that id.
Result<const Scenario*> find_scenario(std::string_view id);

// True for the scenarios that load a model.
bool is_loading(std::string_view id);

const char* to_string(Cache cache);

}  // namespace spark::bench
