// What is known of a volume, as `status --json` shows it.
#pragma once

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

enum class State { Waiting, Connecting, Mounting, Ready, Stalled, Lost, Recovering, Refused, Down };
const char* to_string(State state);

struct PathStatus {
  std::string controller, address, state;  // "nvme3", "10.0.0.5:4420", "live"; no controller: "waiting"
  std::string reason;                      // why there is no controller; empty otherwise
  std::string owner{};  // who keeps the controller (nvmetcp/sysfs/registry.hpp); empty: nobody
};

// What keeps other writers out of an exclusive volume.
struct FenceStatus {
  bool reservation = false;  // this host holds the namespace's reservation
  bool mmp = false;          // the file system has multi-mount protection
  std::string held_by;       // another host that holds the volume, as far as it is known; empty: nobody
};

struct DriveStatus {
  nvmetcp::Smart smart;
  WallTime asked_at;
};

struct Status {
  State state = State::Waiting;
  std::string reason;  // a sentence; empty when ready or down
  WallTime since;
  std::optional<WallTime> next_attempt;
  std::string device;  // "/dev/nvme3n1", empty when there is none
  std::string filesystem_type, filesystem_uuid;
  FenceStatus fence;
  std::optional<mounts::Published> published;  // what the mounted file system says of itself
  bool foreign_writes = false;  // a read-only mount is not of what is on the device now: `reason` says why
  std::vector<PathStatus> paths;
  std::vector<std::string> warnings;  // sentences: what is not as asked, and yet works
  std::string pending;                // a sentence: what a reload could not change; empty: nothing
  std::optional<Intent> taken_down;   // by an operator, who wants it to stay so; none: it is to be up
  std::string damage;                 // a sentence: errors recorded in what is mounted; empty: none
  std::string insecure;  // a sentence: a path without the keys, or of another target; empty: none
  std::string bare;      // a sentence: what is wrong with the mount point itself; empty: nothing
  std::optional<DriveStatus> drives;  // none: NFS, not asked yet, or the target does not tell
  History history;
  Latencies probes;
};

// That programs can write under the mount point while nothing is mounted there, or that it holds files, which
// the volume hides; empty: neither.
std::string bare_mount_point(const config::Volume& volume, const mounts::Guard& guard);

// With what is pending or insecure, and what the target's drives warn of.
std::vector<std::string> all_warnings(const Status& status);

json::object to_json(const config::Volume& volume, const Status& status);

}  // namespace spark::volumes
