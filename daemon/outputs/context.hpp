// What the components of this folder share: the configuration in force, where a volume can be written, and
// how long they wait for what.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::outputs {

namespace asio = boost::asio;

// A volume that this host may write, or read, now.
struct VolumePlace {
  std::string root;   // where it is: absolute
  std::string mount;  // its mount point, which has to be mounted; empty on a simulated host
};

struct Timings {
  Duration look{1'000};      // at the volume: while it is away, and while a worker writes it
  Duration retry{2'000};     // after the first failure with a healthy volume; then doubled
  unsigned tries = 5;        // of such failures, without a byte copied in between
  Duration stuck{60'000};    // without a byte although the volume is back: the worker is replaced
  Duration stalled{10'000};  // without a byte: longer than any healthy flush
  Duration record{30'000};   // to write a small file of the state folder
  Duration watch{5'000};     // between looks at an output's folder
  Duration scan{300'000};    // one such look, which flushes what is complete
  Duration shards{5'000};    // between looks whether the other hosts' shards have come
  Duration list{20'000};     // to list what is published on a volume
};

struct Context {
  asio::any_io_executor executor;
  workers::Runner& runner;
  const Clock& clock;
  std::filesystem::path folder;                   // of the records
  std::function<const config::Config&()> config;  // in force now
  // Or why this host can't write it: Unavailable while it is not ready; Refused if waiting does not help;
  // NotFound if it is not configured.
  std::function<Result<VolumePlace>(const std::string& volume)> find_volume;
  // The same, to be read: this host need not be its writer.
  std::function<Result<VolumePlace>(const std::string& volume)> find_readable;
  std::function<bool()> must_yield;  // a training job runs, and copies have to stand back
  Timings timings{};
};

}  // namespace spark::outputs
