// The contents of sysfs, mountinfo and /etc/nvme, read once for all volumes that need them at the same
// moment. With a hundred volumes, separate reads would occupy a whole core.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/device/device_owner.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark {

class HostSnapshot {
 public:
  explicit HostSnapshot(const Clock& clock, SystemRoot root = {})
      : clock_(clock), root_(std::move(root)), list_(root_), namespaces_(root_) {}

  const Result<nvmetcp::HostIdentity>& host();
  const Result<std::vector<nvmetcp::Controller>>& controllers();
  const Result<std::vector<mounts::Mount>>& mounts();
  Result<nvmetcp::Namespace> find_namespace(const std::vector<nvmetcp::Controller>& through,
                                            const std::string& subsystem, std::uint32_t nsid);
  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) const;

  // Call after a change to the host: earlier results are outdated.
  void forget();

 private:
  static constexpr Duration kMoment{200};
  template <class Value>
  struct Seen {
    std::optional<Result<Value>> value;
    SteadyTime at;
  };
  template <class Value, class Look>
  const Result<Value>& recent(Seen<Value>& seen, Look look);

  const Clock& clock_;
  SystemRoot root_;
  nvmetcp::ControllerList list_;
  nvmetcp::NamespaceList namespaces_;
  Seen<nvmetcp::HostIdentity> host_;
  Seen<std::vector<nvmetcp::Controller>> controllers_;
  Seen<std::vector<mounts::Mount>> mounts_;
};

}  // namespace spark
