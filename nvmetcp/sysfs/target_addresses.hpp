// The addresses of one target. They distinguish its controllers from those of another target with a
// subsystem of the same NQN. The kernel treats subsystems of one NQN as one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Until the target is named, every address counts: for programs that only release connections. Copies made
// after that share the addresses that they learn.
class TargetAddresses {
 public:
  // Its portals, as configured. A host name counts once the addresses are learned that it leads to.
  void restrict_to(const std::vector<Portal>& portals);
  // One that a host name leads to; or that the target's own discovery log has, for this subsystem alone.
  void learn(const Portal& numeric, const std::string& subsystem = {});

  // For the subsystem; without one: for all.
  bool has(const Portal& numeric, const std::string& subsystem = {}) const;
  // The controllers that are at one of them, or at none; of other transports than TCP: neither.
  std::vector<Controller> ours(const std::vector<Controller>& all) const;
  std::vector<Controller> strangers(const std::vector<Controller>& all) const;

 private:
  struct Known {
    Portal numeric;
    std::string subsystem;  // empty: all
  };
  std::shared_ptr<std::vector<Known>> known_;
};

}  // namespace spark::nvmetcp
