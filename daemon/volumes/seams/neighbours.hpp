// The seam to the host and to its other volumes. Never blocks.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::volumes {

// What one volume asks of the others of its configuration.
struct OtherVolumes {
  std::function<bool()> share_subsystem;                              // see subsystem_shared()
  std::function<std::string(const nvmetcp::Portal&)> find_target_at;  // see target_at()
};

// As one volume sees them.
class Neighbours {
 public:
  virtual ~Neighbours() = default;

  virtual Result<nvmetcp::HostIdentity> host_identity() = 0;
  // What multi-mount protection calls this host.
  virtual std::string node_name() = 0;
  // Another volume of ours that is up uses the same subsystem of the same target: its controllers stay.
  virtual bool subsystem_shared() = 0;
  // The target of the configuration that has this address; empty: none.
  virtual std::string target_at(const nvmetcp::Portal& numeric) = 0;
};

}  // namespace spark::volumes
