// What the components of this folder share: the configuration in force, where a dataset can be read, and how
// long they wait for what.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/leases/job_leases.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

// Why what is read at a place can't be trusted.
struct Doubt {
  std::string reason;   // "being written by …"
  bool passes = false;  // without anyone's help, in seconds
};

// Where a dataset can be read.
struct SourcePlace {
  std::string path;   // absolute
  std::string mount;  // the volume's mount point that has to carry it; empty: any folder
  std::optional<Doubt> doubt{};
  // Of a volume that another host may write: what has to be unchanged after the copy. Else no device.
  std::string device{};
  std::uint64_t stamp = 0;       // of the device's superblock
  std::uint64_t generation = 0;  // that its writer published last; 0: none
  bool is_exchanged = false;     // with peers; never what this host writes
  std::string drive{};           // that is read: a volume, or the mount that carries a folder
};

struct Timings {
  Duration retry{2000};             // after the first failure of a source that looks healthy; then doubled
  unsigned tries = 5;               // of such a source, without a byte copied
  Duration look{1000};              // at a volume that is away
  Duration stalled{10'000};         // without a byte: longer than any healthy flush or reconnect delay
  Duration stuck{60'000};           // without a byte although the volume is back: the worker is replaced
  Duration upkeep{60'000};          // between two looks for a copy to scrub
  Duration scrub_again{3'600'000};  // after a scrub that could not be done
  Duration settling{100};           // between looks at a volume that is on its first attempt
  Duration doubt{30'000};           // until a doubt that should have passed counts
  Duration recover_again{30'000};   // after a recovery of the cache that could not begin
  JobTimings jobs{};                // of schedulers
};

struct Context {
  asio::any_io_executor executor;
  workers::Runner& runner;
  const Clock& clock;
  std::string state_dir;
  std::function<const config::Config&()> config;  // in force now
  // Or why it can't be read: its volume is not ready.
  std::function<Result<SourcePlace>(const config::Dataset&)> find_source;
  // Its volume is on its first attempt, as after the daemon's start: worth the moment that it takes.
  std::function<bool(const config::Dataset&)> is_settling;
  Timings timings{};
};

}  // namespace spark::datasets
