// This host, and its other volumes.
#pragma once

#include <functional>

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/neighbours.hpp"

namespace spark::volumes {

// What multi-mount protection calls this host.
std::string node_name_of_host();

class HostNeighbours final : public Neighbours {
 public:
  using TargetAt = std::function<std::string(const nvmetcp::Portal&)>;

  // `shared`, `target_at`: see Neighbours; no `target_at`: no target is known.
  HostNeighbours(HostSnapshot& snapshot, std::function<bool()> shared, TargetAt target_at)
      : snapshot_(snapshot), shared_(std::move(shared)), target_at_(std::move(target_at)) {}

  Result<nvmetcp::HostIdentity> host_identity() override { return snapshot_.host(); }
  std::string node_name() override { return node_name_of_host(); }
  bool subsystem_shared() override { return shared_(); }
  std::string target_at(const nvmetcp::Portal& numeric) override {
    return target_at_ ? target_at_(numeric) : "";
  }

 private:
  HostSnapshot& snapshot_;
  std::function<bool()> shared_;
  TargetAt target_at_;
};

}  // namespace spark::volumes
