// Targets in memory: the subsystems offered to each host, and the unreachable targets.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvmetcp/connect/gateway.hpp"

namespace spark::test {

struct FakeExport {
  std::string subsystem;
  std::uint32_t nsid;
  Bytes bytes;
  std::set<std::string> allowed{};  // host NQNs; empty: every host
  bool allows(const nvmetcp::HostIdentity& host) const {
    return allowed.empty() || allowed.contains(host.nqn);
  }
};

class FakeTargets {
 public:
  // A target at `portal` exports `subsystem` with one namespace.
  void offer(const nvmetcp::Portal& portal, const std::string& subsystem, std::uint32_t nsid = 1,
             Bytes bytes = kGiB) {
    exports_[to_string(portal)].push_back({subsystem, nsid, bytes});
    ++generation_;
  }
  // From now on only the allowed hosts can see and connect the subsystem.
  void allow_only(const std::string& subsystem, const std::set<std::string>& host_nqns) {
    for (auto& [portal, exports] : exports_) {
      for (FakeExport& one : exports) {
        if (one.subsystem == subsystem) one.allowed = host_nqns;
      }
    }
    ++generation_;
  }
  void set_reachable(const nvmetcp::Portal& portal, bool reachable) {
    if (reachable) unreachable_.erase(to_string(portal));
    if (!reachable) unreachable_.insert(to_string(portal));
  }

  Result<> reach(const nvmetcp::Portal& portal) const {
    const std::string where = to_string(portal);
    if (exports_.contains(where) && !unreachable_.contains(where)) return {};
    return fail(Errc::Unavailable, "reaching " + where + ": connection refused");
  }
  // Null if the target has no such subsystem.
  const FakeExport* find(const nvmetcp::Portal& portal, const std::string& subsystem) {
    const auto& exports = exports_[to_string(portal)];
    const auto found = std::ranges::find(exports, subsystem, &FakeExport::subsystem);
    return found == exports.end() ? nullptr : &*found;
  }
  nvmetcp::DiscoveryLog log_for(const nvmetcp::Portal& portal, const nvmetcp::HostIdentity& host) {
    nvmetcp::DiscoveryLog log;
    log.generation = generation_;
    for (const FakeExport& one : exports_[to_string(portal)]) {
      if (!one.allows(host)) continue;
      log.entries.push_back({one.subsystem, nvmetcp::SubsystemKind::Io, "tcp", "ipv4", portal});
    }
    return log;
  }

 private:
  std::map<std::string, std::vector<FakeExport>> exports_;  // by portal
  std::set<std::string> unreachable_;
  std::uint64_t generation_ = 1;
};

}  // namespace spark::test
