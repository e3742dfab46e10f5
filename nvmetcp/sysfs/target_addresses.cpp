#include "nvmetcp/sysfs/target_addresses.hpp"

#include <algorithm>

#include "nvmetcp/resolve.hpp"

namespace spark::nvmetcp {

void TargetAddresses::restrict_to(const std::vector<Portal>& portals) {
  if (!known_) known_ = std::make_shared<std::vector<Known>>();
  for (const Portal& portal : portals) {
    if (is_numeric(portal.address)) learn(portal);
  }
}

void TargetAddresses::learn(const Portal& numeric, const std::string& subsystem) {
  if (!has(numeric, subsystem)) known_->push_back({numeric, subsystem});
}

bool TargetAddresses::has(const Portal& numeric, const std::string& subsystem) const {
  return !known_ || std::ranges::any_of(*known_, [&](const Known& known) {
    const bool is_its = known.subsystem.empty() || known.subsystem == subsystem;
    return is_its && known.numeric.port == numeric.port &&
           same_address(known.numeric.address, numeric.address);
  });
}

std::vector<Controller> TargetAddresses::ours(const std::vector<Controller>& all) const {
  std::vector<Controller> found = all;
  std::erase_if(found,
                [&](const auto& one) { return one.transport != "tcp" || !has(one.portal, one.subsystem); });
  return found;
}

std::vector<Controller> TargetAddresses::strangers(const std::vector<Controller>& all) const {
  std::vector<Controller> found = all;
  std::erase_if(found,
                [&](const auto& one) { return one.transport != "tcp" || has(one.portal, one.subsystem); });
  return found;
}

}  // namespace spark::nvmetcp
