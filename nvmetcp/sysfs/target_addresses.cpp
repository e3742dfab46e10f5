#include "nvmetcp/sysfs/target_addresses.hpp"

#include <algorithm>

#include "nvmetcp/resolve.hpp"

namespace spark::nvmetcp {

void TargetAddresses::restrict_to(const std::vector<Portal>& portals) {
  if (!numeric_) numeric_ = std::make_shared<std::vector<Portal>>();
  for (const Portal& portal : portals) {
    if (is_numeric(portal.address)) learn(portal);
  }
}

void TargetAddresses::learn(const Portal& numeric) {
  if (!has(numeric)) numeric_->push_back(numeric);
}

bool TargetAddresses::has(const Portal& numeric) const {
  return !numeric_ || std::ranges::any_of(*numeric_, [&](const Portal& known) {
    return known.port == numeric.port && same_address(known.address, numeric.address);
  });
}

std::vector<Controller> TargetAddresses::ours(const std::vector<Controller>& all) const {
  std::vector<Controller> found = all;
  std::erase_if(found, [&](const auto& one) { return one.transport != "tcp" || !has(one.portal); });
  return found;
}

std::vector<Controller> TargetAddresses::strangers(const std::vector<Controller>& all) const {
  std::vector<Controller> found = all;
  std::erase_if(found, [&](const auto& one) { return one.transport != "tcp" || has(one.portal); });
  return found;
}

}  // namespace spark::nvmetcp
