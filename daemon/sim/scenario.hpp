// What a simulated host begins with and what happens to it: the section `simulation` of a configuration. The
// keys are in docs/simulation.md.
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

// What a portal of a target answers: everything, nothing, or that nothing listens there.
enum class Reach { Up, Down, Refusing };

// What becomes of connects, or of mounts, from now on.
enum class Calls { Work, Hang };

// What happens to a mount that is there: another program unmounts it, or its file system shuts down.
enum class MountEnd { Gone, ShutDown };

struct TargetChange {
  std::string target;
  std::string address;  // of the portals concerned; empty means all
  std::optional<Reach> state;
  bool removes_controllers = false;  // the kernel gives up
};

// Unset means unchanged.
struct VolumeChange {
  // None: no answer.
  using Latency = std::optional<Duration>;

  std::string volume;
  std::optional<bool> offered;
  std::optional<std::string> type;  // of its file system; empty means no file system
  std::optional<std::string> uuid;
  std::optional<Bytes> size;
  std::optional<bool> mmp, reservations;
  std::optional<std::string> writer;  // another host that has it open for writing; empty means none
  std::optional<Latency> latency;     // of a read
  std::optional<std::string> users;   // programs of this host that have files open; empty means none
  std::optional<Calls> connects, mounts;
  std::optional<MountEnd> mount_end;
};

using WorldChange = std::variant<TargetChange, VolumeChange>;

struct Event {
  std::optional<Duration> after;  // since the event before, or the start; none: at the next SIGUSR1
  WorldChange change;
  std::string sentence;  // for the log
};

struct Scenario {
  Duration pace{0};  // how long a connect, a mount and an unmount take
  bool repeats = false;
  std::vector<WorldChange> beginning;
  std::vector<Event> events;
};

// Invalid, with file:line:column for each problem, as the configuration's. `config` is that of the same file.
Result<Scenario> parse_scenario(const std::string& yaml, const config::Config& config);
Result<Scenario> load_scenario(const config::Config& config);

}  // namespace spark::sim
