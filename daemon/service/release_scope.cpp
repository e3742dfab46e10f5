#include "daemon/service/release_scope.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark {

void know_controllers(const volumes::Seams& seams, const config::Config& config,
                      const config::Volume& volume) {
  if (!volume.nvme) return;
  const auto target = config.targets.find(volume.nvme->target);
  const bool has_target = target != config.targets.end();
  nvmetcp::TargetAddresses others;
  others.restrict_to({});
  seams.snapshot.addresses().restrict_to({});
  for (const config::Volume& other : config.volumes) {
    if (!has_target || !other.nvme || other.nvme->subsystem != volume.nvme->subsystem) continue;
    const config::Target& its = config.targets.at(other.nvme->target);
    auto& addresses = config::is_same_target(its, target->second) ? seams.snapshot.addresses() : others;
    for (const nvmetcp::Portal& portal : its.portals) {
      if (nvmetcp::is_numeric(portal.address)) addresses.learn(portal);
    }
  }
  for (const nvmetcp::Controller& one : seams.snapshot.strangers(volume.nvme->subsystem)) {
    if (one.owner == nvmetcp::kOwner && !others.has(one.portal)) seams.snapshot.addresses().learn(one.portal);
  }
}

std::optional<volumes::LooseConnection> loose_connection(const SharedLink& link,
                                                         const config::Volume& volume) {
  if (link.volumes > 0 || link.is_needed) return std::nullopt;
  return volumes::LooseConnection(volume.nvme->subsystem);
}

std::vector<std::shared_ptr<SharedLink>> links_of(const config::Config& config,
                                                  const std::vector<config::Volume>& volumes) {
  // A volume outside the configuration has no target: it uses its subsystem's first link.
  const auto share = [&](const config::Volume& one, const config::Volume& other) {
    if (!one.nvme || !other.nvme) return !one.nvme && !other.nvme;
    if (one.nvme->subsystem != other.nvme->subsystem) return false;
    const auto its = config.targets.find(one.nvme->target), others = config.targets.find(other.nvme->target);
    return its == config.targets.end() || others == config.targets.end() ||
           config::is_same_target(its->second, others->second);
  };
  std::vector<std::shared_ptr<SharedLink>> links;
  for (const config::Volume& volume : volumes) {
    const auto before = std::ranges::find_if(volumes, [&](const auto& one) { return share(one, volume); });
    const auto index = static_cast<std::size_t>(before - volumes.begin());
    links.push_back(index < links.size() ? links[index] : std::make_shared<SharedLink>());
    ++links.back()->volumes;
  }
  return links;
}

std::vector<config::Volume> not_in_config(const config::Config& config, HostSnapshot& snapshot) {
  std::set<std::string> ours, named;  // subsystems
  std::set<std::filesystem::path> mount_points;
  for (const auto& controller : snapshot.controllers().value_or(std::vector<nvmetcp::Controller>{})) {
    if (!controller.is_discovery && controller.owner == nvmetcp::kOwner) ours.insert(controller.subsystem);
  }
  for (const config::Volume& volume : config.volumes) {
    mount_points.insert(volume.mount);
    if (volume.nvme) named.insert(volume.nvme->subsystem);
  }
  std::vector<config::Volume> found;
  const auto add = [&](const std::string& subsystem, const std::filesystem::path& mount) {
    config::Volume volume;
    volume.name = mount.empty() ? printable(subsystem) : printable(mount.native());
    volume.nvme = config::NvmeSource{"", subsystem, config::kAnyNamespace, "", ""};
    volume.mount = mount;
    found.push_back(std::move(volume));
    named.insert(subsystem);
  };
  for (const mounts::Mount& mount : snapshot.mounts().value_or(std::vector<mounts::Mount>{})) {
    const auto owner = snapshot.owner_of_device(mount.device_number);
    if (owner && ours.contains(owner->subsystem) && mount_points.insert(mount.target).second)
      add(owner->subsystem, mount.target);
  }
  for (const std::string& subsystem : ours) {
    if (!named.contains(subsystem)) add(subsystem, {});
  }
  return found;
}

std::vector<nvmetcp::Controller> watches(HostSnapshot& snapshot) {
  auto all = snapshot.controllers().value_or(std::vector<nvmetcp::Controller>{});
  std::erase_if(all, [](const nvmetcp::Controller& controller) {
    return !controller.is_discovery || controller.owner != nvmetcp::kOwner;
  });
  return all;
}

}  // namespace spark
