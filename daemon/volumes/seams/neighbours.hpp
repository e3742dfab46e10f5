// What a volume asks the host, and the host's other volumes. Never blocks.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::volumes {

// The host fills in the first two; VolumeSet, which knows the other volumes, the rest.
struct Neighbours {
  std::function<Result<nvmetcp::HostIdentity>()> host_identity;
  // This host's name in multi-mount protection.
  std::function<std::string()> node_name;
  // Another volume that is up uses the same subsystem of the same target: the controllers must stay.
  std::function<bool()> subsystem_shared = [] { return false; };
  // The configured target with this address; empty means none.
  std::function<std::string(const nvmetcp::Portal& numeric)> target_at = [](const nvmetcp::Portal&) {
    return std::string();
  };
  // This volume has reached its target again: the others of the target need not wait any longer.
  std::function<void()> target_is_back = [] {};
};

}  // namespace spark::volumes
