// The state of a volume, as shown by `status --json`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/mounts/filesystems/published.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/volumes/history.hpp"
#include "daemon/volumes/seams/intent.hpp"
#include "nvmetcp/device/smart.hpp"

namespace spark::volumes {

enum class State { Waiting, Connecting, Mounting, Ready, Stalled, Lost, Recovering, Refused, Leaving, Down };
const char* to_string(State state);

struct PathStatus {
  std::string controller, address, state;  // "nvme3", "10.0.0.5:4420", "live"; no controller: "waiting"
  std::string reason;                      // why there is no controller; otherwise empty
  std::string owner{};  // the controller's owner (nvmetcp/sysfs/registry.hpp); empty means none
};

// The holder of an exclusive volume's namespace at the last look.
struct FenceStatus {
  bool reservation = false;  // this host holds it
  std::string held_by;       // another host that holds the volume, as far as known; empty means none
};

// What is known of the mounted file system, and shown.
struct MountedFacts {
  bool has_mmp = false;                        // multi-mount protection
  std::optional<mounts::Published> published;  // none: not known
  // A read-only mount is outdated or being written on the device: the volume's `reason` has the details.
  bool foreign_writes = false;
  std::string damage;  // a sentence: errors recorded in it; empty means none
};
struct CheckedMount;
using CheckedMountPtr = std::shared_ptr<CheckedMount>;  // shared with steps in progress, which may outlast it

// Deviations from the configuration that do not prevent use. Each kind has one owner, which sets it again at
// each of its checks; those of the mount end with it.
enum class Warning {
  Connection,     // the kernel did not apply an option
  MountOptions,   // another program mounted it, in another way
  NamespaceId,    // the target gave its disk another identity
  FilesystemId,   // a person gave its file system another UUID
  OnlyMmp,        // the target offers no reservations any more
  Unannounced,    // what the file system says of its writer could not be written
  LeftBehind,     // programs have files open on the mount that was replaced
  StillReserved,  // its reservation could not be given back
  LeftConnected,  // as it went down: another program uses another of its namespaces
  Unrecorded,     // an operator's `down`, or its end, could not be recorded
  CutShort,       // the target shows only a part of its disk
};

struct DriveStatus {
  nvmetcp::Smart smart;
  WallTime asked_at;
};

struct Status {
  State state = State::Waiting;
  std::string reason;  // a sentence; empty if ready or down
  WallTime since;
  std::optional<WallTime> next_attempt;
  std::string device;  // "/dev/nvme3n1", empty if there is none
  std::string filesystem_type, filesystem_uuid;
  FenceStatus fence;
  // The current mount; null: there is none, or it was not checked.
  CheckedMountPtr checked;
  std::vector<PathStatus> paths;
  std::map<Warning, std::string> warnings;  // sentences; see warn()
  std::string pending;               // a sentence: changes that a reload could not make; empty means none
  std::optional<Intent> taken_down;  // by an operator, to stay so; none means that it should be up
  // An operator has asked to write it, and was told that nothing is left to do. Until the next publication:
  // a worker that outlived its daemon may still end an earlier one, or it was recorded nowhere.
  // Record::ToWrite carries it over a restart.
  bool is_to_write = false;
  std::string insecure;  // a sentence: a path without the keys, or of another target; empty means none
  std::string bare;      // a sentence: a problem with the mount point itself; empty means none
  std::optional<DriveStatus> drives;  // none: NFS, not queried yet, or not reported by the target
  History history;
  Latencies probes;

  const MountedFacts& mounted() const;  // none without a checked mount
  // An empty sentence withdraws the warning.
  void warn(Warning kind, std::string sentence);
  // The connection is gone, and with it all that was found on it.
  void forget_connection();
};

// A sentence if programs can write under the mount point while nothing is mounted there, or if it contains
// files, which the volume hides; otherwise empty.
std::string bare_mount_point(const config::Volume& volume, const mounts::Guard& guard);

// Includes the pending change, the insecure path, and warnings from the target's drives.
std::vector<std::string> all_warnings(const Status& status);

json::object to_json(const config::Volume& volume, const Status& status);

}  // namespace spark::volumes
