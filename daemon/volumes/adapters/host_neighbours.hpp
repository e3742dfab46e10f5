// This host, and its other volumes.
#pragma once

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/neighbours.hpp"

namespace spark::volumes {

class HostNeighbours final : public Neighbours {
 public:
  HostNeighbours(HostSnapshot& snapshot, OtherVolumes others)
      : snapshot_(snapshot), others_(std::move(others)) {}

  Result<nvmetcp::HostIdentity> host_identity() override { return snapshot_.host(); }
  std::string node_name() override { return host_name(); }  // as in multi-mount protection
  bool subsystem_shared() override { return others_.share_subsystem(); }
  std::string target_at(const nvmetcp::Portal& numeric) override { return others_.find_target_at(numeric); }
  void target_is_back() override { others_.target_is_back(); }

 private:
  HostSnapshot& snapshot_;
  OtherVolumes others_;
};

}  // namespace spark::volumes
