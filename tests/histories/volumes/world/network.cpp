#include "tests/histories/volumes/world/network.hpp"

#include "nvmetcp/resolve.hpp"
#include "tests/histories/volumes/world/scene.hpp"

namespace spark::histories {

void Scene::tell(const std::string& sentence) const {
  if (!story.is_told()) return;
  story.tell(since_start(time) + "  " + sentence);
}

std::string since_start(const VirtualTime& time) {
  const auto ms = time.elapsed().count();
  std::string fraction = std::to_string(ms % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  std::string seconds = std::to_string(ms / 1000);
  if (seconds.size() < 5) seconds.insert(0, 5 - seconds.size(), ' ');
  return seconds + "." + fraction + " s";
}

std::string Disk::holder() {
  const nvmetcp::Registrant* holds = reservations.holder();
  return holds == nullptr ? "" : holds->host_id;
}

mounts::Superblock superblock_of(const Disk& disk) {
  const FileSystem& fs = disk.fs;
  mounts::Superblock superblock;
  superblock.type = fs.type;
  superblock.uuid = fs.uuid;
  superblock.bytes = disk.bytes;
  superblock.filesystem_bytes = fs.bytes;
  superblock.being_written = fs.is_open;
  superblock.has_mmp = fs.has_mmp;
  superblock.mmp_interval_s = fs.has_mmp ? fs.mmp_interval : 0;
  superblock.mmp_node = fs.mmp_node;
  superblock.mmp_open = fs.mmp_open && !fs.is_mmp_claim;
  superblock.mmp_claimed = fs.mmp_open && fs.is_mmp_claim;
  superblock.damage = fs.damage;
  superblock.stamp = fs.stamp;
  superblock.mounts = fs.type == "ext4" ? fs.mounts : 0;
  superblock.read_us = 300;
  return superblock;
}

Target* Network::reach(std::size_t host, const nvmetcp::Portal& portal) {
  if (!has_link[host]) return nullptr;
  for (Target& target : targets) {
    if (target.is_up && target.address == portal.address && portal.port == 4420) return &target;
  }
  return nullptr;
}

Disk* Network::disk_at(std::size_t host, const nvmetcp::Portal& portal, const std::string& subsystem,
                       std::uint32_t nsid) {
  const Target* target = reach(host, portal);
  if (target == nullptr) return nullptr;
  const auto offered = target->offered.find(subsystem);
  if (offered == target->offered.end()) return nullptr;
  const auto disk = offered->second.find(nsid);
  return disk == offered->second.end() ? nullptr : disk->second;
}

Result<nvmetcp::Portal> Network::resolve(std::size_t host, const nvmetcp::Portal& portal) {
  if (nvmetcp::is_numeric(portal.address)) return portal;
  for (const Target& target : targets) {
    if (target.host_name != portal.address || !has_dns[host]) continue;
    return nvmetcp::Portal{target.address, portal.port};
  }
  return fail(Errc::Unavailable, "looking up " + portal.address + ": Temporary failure in name resolution");
}

}  // namespace spark::histories
