// The network of the simulated hosts: who reaches which target, and what names resolve to.
#pragma once

#include <array>
#include <deque>

#include "base/result.hpp"
#include "tests/histories/volumes/world/disk.hpp"

namespace spark::histories {

inline constexpr std::size_t kHosts = 2;

class Network {
 public:
  std::deque<Target> targets;
  std::deque<Disk> disks;
  std::array<bool, kHosts> has_link{true, true};
  std::array<bool, kHosts> has_dns{true, true};

  // The target that a host reaches at a numeric address; null: none.
  Target* reach(std::size_t host, const nvmetcp::Portal& portal);
  // The namespace's disk, if the host reaches it there.
  Disk* disk_at(std::size_t host, const nvmetcp::Portal& portal, const std::string& subsystem,
                std::uint32_t nsid);
  Result<nvmetcp::Portal> resolve(std::size_t host, const nvmetcp::Portal& portal);
};

}  // namespace spark::histories
