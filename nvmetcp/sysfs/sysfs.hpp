// Reads of /sys, and of /run, that never block: safe on the daemon's thread. No device is opened.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Every controller of every transport. One that vanishes while it is read is left out.
Result<std::vector<Controller>> list_controllers(const SystemRoot& root);

// The same for repeated reads: attributes that never change on a live controller are read once.
class ControllerList {
 public:
  explicit ControllerList(SystemRoot root) : root_(std::move(root)) {}
  Result<std::vector<Controller>> look();

 private:
  struct Known {
    ino_t inode = 0;  // of its folder: a name can be taken by the next controller
    Controller controller;
  };
  SystemRoot root_;
  std::map<std::string, Known> known_;
};

// The controllers of a subsystem that this host NQN made (empty host_nqn: any).
std::vector<Controller> controllers_of(const std::vector<Controller>& all, const std::string& subsystem,
                                       const std::string& host_nqn);

// The connection to that subsystem by its controller's name, of which this host may change settings. `doing`
// begins the sentence of its errors. NotFound: no such connection (any more). Refused: it is another
// program's.
Result<Controller> connection_to_change(const SystemRoot& root, const std::string& controller,
                                        const std::string& subsystem, const std::string& doing);

// The number of a block device such as "nvme3n1"; none: it is gone.
std::optional<dev_t> device_number(const SystemRoot& root, const std::string& device);

// The namespace's block device under a controller of this subsystem that is not going away. NotFound: not
// (yet) there.
Result<Namespace> find_namespace(const SystemRoot& root, const std::string& subsystem, std::uint32_t nsid);
Result<Namespace> find_namespace(const SystemRoot& root, const std::vector<Controller>& all,
                                 const std::string& subsystem, std::uint32_t nsid);

// The same for repeated searches: while the folders that it was found in are the same ones, it counts as
// unchanged, for half a minute at most.
class NamespaceList {
 public:
  explicit NamespaceList(SystemRoot root) : root_(std::move(root)) {}
  Result<Namespace> find(const std::vector<Controller>& all, const std::string& subsystem,
                         std::uint32_t nsid);

 private:
  struct Known {
    Namespace found;
    std::string controller, node;          // "nvme3", and its path device: "nvme0c3n1"
    ino_t node_inode = 0, disk_inode = 0;  // of the folders of that and of the disk
    std::chrono::steady_clock::time_point since;
  };
  bool is_still(const Known& known, const std::vector<Controller>& all) const;

  SystemRoot root_;
  std::map<std::pair<std::string, std::uint32_t>, Known> known_;
};

}  // namespace spark::nvmetcp
