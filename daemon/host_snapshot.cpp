#include "daemon/host_snapshot.hpp"

#include "nvmetcp/device/device_owner.hpp"
#include "nvmetcp/host_identity.hpp"

namespace spark {

template <class Value, class Look>
const Result<Value>& HostSnapshot::recent(Seen<Value>& seen, Look look) {
  const SteadyTime now = clock_.steady();
  if (!seen.value || now - seen.at >= kMoment) {
    seen.value = look();
    seen.at = now;
  }
  return *seen.value;
}

const Result<nvmetcp::HostIdentity>& HostSnapshot::host() {
  return recent(host_, [this] { return nvmetcp::read_host_identity(root_); });
}

const Result<std::vector<nvmetcp::Controller>>& HostSnapshot::controllers() {
  return recent(controllers_, [this] { return list_.look(); });
}

const Result<std::vector<mounts::Mount>>& HostSnapshot::mounts() {
  return recent(mounts_, [this] { return mounts::read_mount_table(root_); });
}

Result<nvmetcp::Namespace> HostSnapshot::find_namespace(const std::vector<nvmetcp::Controller>& through,
                                                        const std::string& subsystem, std::uint32_t nsid) {
  return namespaces_.find(through, subsystem, nsid);
}

Result<nvmetcp::DeviceOwner> HostSnapshot::owner_of_device(dev_t device) const {
  return nvmetcp::owner_of_device(root_, device);
}

void HostSnapshot::forget() {
  host_.value.reset();
  controllers_.value.reset();
  mounts_.value.reset();
}

}  // namespace spark
