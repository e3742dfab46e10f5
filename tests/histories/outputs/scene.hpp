// The simulated hosts, the volume that they share, and the configuration: what the parts of the world have in
// common.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "daemon/config/model.hpp"
#include "daemon/outputs/context.hpp"
#include "tests/histories/engine/history.hpp"
#include "tests/histories/engine/virtual_time.hpp"
#include "tests/histories/outputs/system/disks.hpp"
#include "tests/histories/outputs/system/libc.hpp"
#include "tests/histories/outputs/truth.hpp"

namespace spark::histories {

class Daemon;

inline constexpr char kOutput[] = "run7", kVolume[] = "checkpoints";

// What happens to the next worker of a verb on one host.
struct WorkerFate {
  std::string verb;  // empty: none is planned
  Fault fault;
  std::function<void()> interlude;  // instead of the fault: happens at that call, while the worker runs
};

struct Machine final : Clock {
  Machine(const VirtualTime& its_time, std::size_t its_index) : time(its_time), index(its_index) {}
  ~Machine() override;

  // The clock of this host may be wrong.
  WallTime wall() const override {
    return time.wall() + std::chrono::duration_cast<WallTime::duration>(skew);
  }
  SteadyTime steady() const override { return time.steady(); }
  std::string name() const { return "spark" + std::to_string(index + 1); }
  std::filesystem::path job_folder() const { return disk / "out"; }

  const VirtualTime& time;
  std::size_t index;
  std::filesystem::path disk;
  std::chrono::nanoseconds skew{0};
  SteadyTime booted{};
  Content durable{};     // what a power cut leaves of the job's folder
  std::string own_link;  // target of a link `latest` that the job made; empty: none
  WorkerFate fate;
  std::optional<SteadyTime> answer_lost{};  // of a sending that failed, perhaps after it had published
  unsigned starts = 0;                      // of the daemon
  SteadyTime started{};                     // the daemon
  SteadyTime looked{};                      // the daemon, into the job's folder, for the last time
  std::unique_ptr<Daemon> daemon;           // null while it does not run
};

// A shared file system: an NFS export that all hosts write, or a drive that one host holds.
struct SharedVolume {
  std::filesystem::path path;
  bool is_nfs = true;
  std::size_t holder = 0;           // of a drive
  std::vector<bool> is_away;        // by host
  std::vector<SteadyTime> changed;  // by host: when it went away, came back, or was taken over
  bool is_full = false;
  bool hangs = false;  // while it is away, its I/O waits instead of failing

  bool is_reached_by(std::size_t host) const { return !is_away[host] && (is_nfs || holder == host); }
  Result<outputs::VolumePlace> writable_by(std::size_t host) const;
  Result<outputs::VolumePlace> readable_by(std::size_t host) const;
};

class Scene {
 public:
  Scene(std::uint64_t its_seed, Story its_story);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene();

  std::filesystem::path published() const { return volume.path / settings.to; }
  SteadyTime now() const { return time.steady(); }
  void tell(const std::string& sentence) const;
  void tell(const Machine& machine, const std::string& sentence) const;
  // The first broken promise counts, and ends the history.
  void broken(const std::string& oracle, const std::string& what);
  // The history goes on, since worse may follow; one of these is reported at its end.
  void noted(const std::string& oracle, const std::string& what);
  std::optional<Violation> worst() const;

  std::uint64_t seed;
  Story story;
  VirtualTime time;
  Truth truth;
  std::vector<std::unique_ptr<Machine>> machines;
  SharedVolume volume;
  config::Output settings;  // of the only output; `path` is that of each host
  std::optional<Violation> violation;
  std::vector<std::string> logged;  // of the daemons, all sentences

 private:
  std::vector<Violation> noted_;  // one for each oracle
};

// "the complete state of step-100", and the like, for messages.
std::string in_short(const Listing& listing);

}  // namespace spark::histories
