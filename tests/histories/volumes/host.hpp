// One simulated host: its kernel, its workers, and the daemon's state folder. It outlives every daemon.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "daemon/volumes/seams/seams.hpp"
#include "tests/histories/volumes/world/mount_tree.hpp"
#include "tests/histories/volumes/world/workers.hpp"

namespace spark::histories {

// /var/lib/spark-stage: survives the daemon and the host.
struct StateFolder {
  bool is_full = false;
  std::set<std::string> not_pinned;  // volumes of which a change was not recorded for want of room
  std::map<std::string, volumes::FilesystemIdentity> pins;  // by volume
  std::map<std::string, volumes::Intent> intents;
  std::map<std::pair<std::string, volumes::Record>, json::object> records;
  std::set<std::string> guards;  // mount points

  Result<> check_room(const std::string& doing) const;
};

struct Host {
  Host(Scene its_scene, Network& its_network, std::size_t its_index, NvmeDriver::Events events,
       int* last_super);

  Scene scene;
  Network& network;
  std::size_t index;
  std::string name;  // "spark1", also in multi-mount protection
  NvmeDriver driver;
  OpenFileSystems file_systems;
  Folders root;  // of the root file system
  MountTree mounts;
  Workers workers;
  StateFolder state;
  // Whether the dead mount of a volume there is left to its users (`on_loss: hold`).
  std::function<bool(const std::string& mount)> holds_dead = [](const std::string&) { return false; };

  nvmetcp::LocalRegistrant registrant() const;
};

// The seams of one volume, as the real adapters and workers behave (daemon/volumes/adapters,
// daemon/workers/verbs).
volumes::Seams seams_of(Host& host, const std::string& volume);

}  // namespace spark::histories
