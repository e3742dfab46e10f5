// The seam to the host and to its other volumes. Never blocks.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::volumes {

// One volume's queries about the other volumes of the configuration.
struct OtherVolumes {
  std::function<bool()> share_subsystem;                              // see subsystem_shared()
  std::function<std::string(const nvmetcp::Portal&)> find_target_at;  // see target_at()
  std::function<void()> target_is_back;                               // see target_is_back()
};

// The interface for one volume.
class Neighbours {
 public:
  virtual ~Neighbours() = default;

  virtual Result<nvmetcp::HostIdentity> host_identity() = 0;
  // This host's name in multi-mount protection.
  virtual std::string node_name() = 0;
  // Another volume that is up uses the same subsystem of the same target: the controllers must stay.
  virtual bool subsystem_shared() = 0;
  // The configured target with this address; empty means none.
  virtual std::string target_at(const nvmetcp::Portal& numeric) = 0;
  // This volume has reached its target again: the others of the target need not wait any longer.
  virtual void target_is_back() = 0;
};

}  // namespace spark::volumes
