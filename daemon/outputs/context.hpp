// Shared by the components of this folder: the configuration in force, access to volumes, timeouts.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::outputs {

namespace asio = boost::asio;

// A volume that this host may write, or read, now.
struct VolumePlace {
  std::string root;   // absolute path
  std::string mount;  // its mount point, where it must be mounted; empty on a simulated host
  mounts::MountNumbers numbers{};

  // A worker's call there; it compares the mount again.
  workers::Call call(const std::string& volume, std::string verb, json::object request,
                     std::optional<Duration> deadline = std::nullopt) const {
    request["root"] = root;
    request["mount"] = mount;
    request["mounted"] = to_json(numbers);
    return {std::move(verb), "volume " + printable(volume), std::move(request), deadline};
  }
};

struct Timings {
  Duration look{1'000};      // between checks of the volume, while it is away and while a worker writes it
  Duration retry{2'000};     // after the first failure with a healthy volume; then doubled
  unsigned tries = 5;        // such failures, if no byte is copied in between
  Duration stuck{60'000};    // without a byte although the volume is back: the worker is replaced
  Duration stalled{10'000};  // without a byte: longer than any healthy flush
  Duration record{30'000};   // timeout for writing a small file in the state folder
  Duration watch{5'000};     // between checks of an output's folder
  Duration settle{
      500};  // between checks of a folder that changed a moment ago, and their number, while a caller waits
  unsigned settle_looks = 12;
  Duration steady{3'000};   // a checkpoint that has not changed for so long is not being written
  Duration scan{300'000};   // timeout of one check, which flushes complete checkpoints
  Duration shards{5'000};   // between checks for the other hosts' shards
  Duration others{30'000};  // without a byte from other hosts: the next lower checkpoint is sent as well
  Duration sign{10'000};    // between two signs to other hosts that a shard will be sent
  Duration prune{600'000};  // timeout for deleting older copies; the next call continues
  Duration list{20'000};    // timeout for listing the published checkpoints on a volume
};

struct Context {
  asio::any_io_executor executor;
  workers::Runner& runner;
  const Clock& clock;
  std::filesystem::path folder;                   // of the records
  std::function<const config::Config&()> config;  // in force now
  // The volume's place, or why this host can't write it: Unavailable while it is not ready; Refused if
  // waiting does not help; NotFound if it is not configured.
  std::function<Result<VolumePlace>(const std::string& volume)> find_volume;
  // The same for reading: this host need not be its writer.
  std::function<Result<VolumePlace>(const std::string& volume)> find_readable;
  std::function<bool()> must_yield;  // a training job runs, so copies must reduce their load
  // Names of the entries of a volume's folder that are leased, or being staged, on this host now. Unavailable
  // while the leases are not known.
  std::function<Result<std::vector<std::string>>(const std::string& volume, const std::string& folder)>
      in_use;
  Timings timings{};
};

}  // namespace spark::outputs
