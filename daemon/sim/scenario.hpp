// The initial state and the events of a simulated host: the section `simulation` of a configuration. The keys
// are in docs/simulation.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"

namespace spark::sim {

// How a target's portal answers: normally, not at all, or with a refused connection.
enum class Reach { Up, Down, Refusing };

// The behaviour of connects, or of mounts, from now on.
enum class Calls { Work, Hang };

// How an existing mount ends: another program unmounts it, or its file system shuts down.
enum class MountEnd { Gone, ShutDown };

struct TargetChange {
  std::string target;
  std::string address;  // of the affected portals; empty means all
  std::optional<Reach> state;
  bool removes_controllers = false;  // the kernel removes its controllers
};

// Unset means unchanged.
struct VolumeChange {
  // None means no answer.
  using Latency = std::optional<Duration>;

  std::string volume;
  std::optional<bool> offered;
  std::optional<std::string> type;  // of its file system; empty means no file system
  std::optional<std::string> uuid;
  std::optional<Bytes> size;
  std::optional<bool> mmp, reservations;
  std::optional<std::string> writer;  // another host with the file system open for writing; empty means none
  std::optional<Latency> latency;     // of a read; none means no answer
  std::optional<std::string> users;   // programs of this host with open files; empty means none
  std::optional<Calls> connects, mounts;
  std::optional<MountEnd> mount_end;
};

using WorldChange = std::variant<TargetChange, VolumeChange>;

struct Event {
  std::optional<Duration> after;  // the previous event, or the start; none: at the next SIGUSR1
  WorldChange change;
  std::string sentence;  // for the log
};

struct Scenario {
  Duration pace{0};  // duration of each connect, mount and unmount
  bool repeats = false;
  std::vector<WorldChange> beginning;
  std::vector<Event> events;
};

// Invalid, with file:line:column for each problem, in the configuration's format. `config` was read from the
// same file.
Result<Scenario> parse_scenario(const std::string& yaml, const config::Config& config);
Result<Scenario> load_scenario(const config::Config& config);

}  // namespace spark::sim
