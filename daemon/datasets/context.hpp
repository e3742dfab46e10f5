// Shared by the components of this folder: the configuration in force, access to datasets' sources, timeouts.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/live/views.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

// Why the data at a place can't be trusted.
struct Doubt {
  std::string reason;   // "being written by …"
  bool passes = false;  // it ends within seconds without intervention
};

// The place from which a dataset can be read.
struct SourcePlace {
  std::string path;   // absolute; empty if is_at_peers
  std::string mount;  // the volume must be mounted there; empty means any folder
  mounts::MountNumbers numbers{};
  std::optional<Doubt> doubt{};
  // For a volume that another host may write: the device that must be unchanged after the copy. Otherwise
  // empty.
  std::string device{};
  std::uint64_t stamp = 0;       // of the device's superblock
  std::uint64_t generation = 0;  // published last by its writer; 0 means none
  bool is_exchanged = false;     // with peers; never a volume that this host writes
  std::string origin{};          // see staging::Source
  std::string drive{};           // the drive that is read: a volume, or the mount that contains a folder
  bool is_at_peers = false;      // other hosts have it, and none of it is on this one
};

struct Timings {
  Duration retry{2000};             // after the first failure of a source that looks healthy; then doubled
  unsigned tries = 5;               // attempts with such a source if no byte is copied
  Duration look{1000};              // between checks of a volume that is away
  Duration stalled{10'000};         // without a byte: longer than any healthy flush or reconnect delay
  Duration stuck{60'000};           // without a byte although the volume is back: the worker is replaced
  Duration upkeep{60'000};          // between two checks for a copy to scrub
  Duration scrub_again{3'600'000};  // after a scrub that could not be done
  Duration settling{100};           // between checks of a volume on its first attempt
  Duration doubt{30'000};           // after which a temporary doubt counts as permanent
  Duration recover_again{30'000};   // after a recovery of the cache that could not start
  Duration peers{15'000};           // between attempts to get the rest from peers, while a volume is away
  JobTimings jobs{};                // for jobs of schedulers
  Duration old{30'000};             // an answer about the cache: a request asks for another one
  Duration turn{300'000};           // of a slow copy, while another user waits; doubled each time
};

struct Context {
  asio::any_io_executor executor;
  workers::Runner& runner;
  const Clock& clock;
  std::string state_dir;
  std::function<const config::Config&()> config;  // in force now
  // The place of a dataset, or why it can't be read: its volume is not ready.
  std::function<Result<SourcePlace>(const config::Dataset&)> find_source;
  // Its volume is on its first attempt, as after the daemon's start, so a short wait is worthwhile.
  std::function<bool(const config::Dataset&)> is_settling;
  Timings timings{};
  // Its volume is settling, or was ready a moment ago: too early for a copy that stands in for it. Unset:
  // never.
  std::function<bool(const config::Dataset&)> may_be_back_soon{};
  live::KeptDescriptors kept{};  // through a restart of the daemon
  live::ViewTimings views{};
};

}  // namespace spark::datasets
