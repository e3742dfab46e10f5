#include "daemon/sim/targets.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "nvmetcp/resolve.hpp"

namespace spark::sim {
namespace {

// FNV-1a: the same on every machine.
std::uint64_t hash_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// Another host opens it for writing and takes the reservation from any holder; or that host closes it.
void set_writer(Storage& storage, const std::string& host) {
  auto& registrants = storage.reservations.state.registrants;
  const std::string former_id = uuid_of("host " + storage.writer);
  std::erase_if(registrants, [&](const auto& one) { return one.host_id == former_id || !host.empty(); });
  if (!host.empty()) registrants.push_back({uuid_of("host " + host), hash_of(host, 0) | 1, true});
  ++storage.reservations.state.generation;
  ++storage.stamp;
  storage.writer = host;
}

}  // namespace

std::string uuid_of(const std::string& name) {
  const std::uint64_t high = hash_of(name, 0), low = hash_of(name, 1);
  char text[37];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xfff),
                static_cast<unsigned>(low >> 48 & 0xfff),
                static_cast<unsigned long long>(low & 0xffffffffffff));
  return text;
}

void Targets::add(const config::Target& target) {
  for (const nvmetcp::Portal& portal : target.portals) {
    if (find(portal) == nullptr) listeners_.push_back({portal, target.name});
  }
}

void Targets::add(const config::Volume& volume) {
  const auto [entry, is_new] = storages_.try_emplace(volume.name);
  if (!is_new) return;
  Storage& storage = entry->second;
  storage.uuid = uuid_of("file system of " + volume.name);
  if (volume.nfs) {
    storage.source = volume.nfs->host + ":" + volume.nfs->path;
    storage.type = "nfs4";
    return;
  }
  storage.target = volume.nvme->target;
  storage.subsystem = volume.nvme->subsystem;
  storage.nsid = volume.nvme->nsid;
  if (!volume.nvme->filesystem_uuid.empty()) storage.uuid = volume.nvme->filesystem_uuid;
  if (!volume.nvme->filesystem_type.empty()) storage.type = volume.nvme->filesystem_type;
}

bool Targets::concerns(const TargetChange& change, const nvmetcp::Portal& portal) const {
  const Listener* listener = find(portal);
  return listener != nullptr && listener->target == change.target &&
         (change.address.empty() || listener->portal.address == change.address);
}

void Targets::apply(const TargetChange& change) {
  for (Listener& listener : listeners_) {
    if (concerns(change, listener.portal)) listener.reach = change.state.value_or(listener.reach);
  }
}

void Targets::apply(const VolumeChange& change) {
  Storage& storage = storages_[change.volume];
  storage.type = change.type.value_or(storage.type);
  if (change.uuid && *change.uuid != storage.uuid) ++storage.stamp;
  storage.uuid = change.uuid.value_or(storage.uuid);
  storage.size = change.size.value_or(storage.size);
  storage.has_mmp = change.mmp.value_or(storage.has_mmp);
  storage.reservations.offers = change.reservations.value_or(storage.reservations.offers);
  storage.latency = change.latency.value_or(storage.latency);
  if (change.writer) set_writer(storage, *change.writer);
  if (!change.offered) return;
  storage.is_offered = *change.offered;
  ++generation_;
}

const Targets::Listener* Targets::find(const nvmetcp::Portal& portal) const {
  const nvmetcp::Portal numeric = resolve(portal);
  const auto found =
      std::ranges::find_if(listeners_, [&](const auto& one) { return resolve(one.portal) == numeric; });
  return found == listeners_.end() ? nullptr : &*found;
}

nvmetcp::Portal Targets::resolve(const nvmetcp::Portal& portal) {
  if (nvmetcp::is_numeric(portal.address)) return portal;
  // 198.18.0.0/15 is reserved for benchmarks of network devices: no host has these addresses.
  const std::uint64_t hash = hash_of(portal.address, 0);
  return {"198.18." + std::to_string(hash % 256) + "." + std::to_string(hash / 256 % 256), portal.port};
}

Result<> Targets::reach(const nvmetcp::Portal& portal) const {
  const Listener* listener = find(portal);
  const std::string where = to_string(portal);
  if (listener != nullptr && listener->reach == Reach::Up) return {};
  if (listener != nullptr && listener->reach == Reach::Down)
    return fail(Errc::TimedOut, where + " does not answer", "check the network and the target");
  return fail(Errc::Unavailable, "connecting to " + where + ": Connection refused",
              "check that the target's service runs");
}

std::string Targets::target_at(const nvmetcp::Portal& portal) const {
  const Listener* listener = find(portal);
  return listener == nullptr ? "" : listener->target;
}

Result<nvmetcp::DiscoveryLog> Targets::discover(const nvmetcp::Portal& portal) const {
  if (auto reached = reach(portal); !reached) return reached.take_error();
  nvmetcp::DiscoveryLog log;
  log.generation = generation_;
  const std::string target = target_at(portal);
  std::set<std::string> subsystems;  // namespaces of one subsystem are one entry
  for (const auto& [volume, storage] : storages_) {
    if (storage.target == target && storage.is_offered) subsystems.insert(storage.subsystem);
  }
  for (const Listener& listener : listeners_) {
    if (listener.target != target) continue;
    const nvmetcp::Portal numeric = resolve(listener.portal);
    const std::string family = numeric.address.find(':') == std::string::npos ? "ipv4" : "ipv6";
    for (const std::string& subsystem : subsystems)
      log.entries.push_back({subsystem, nvmetcp::SubsystemKind::Io, "tcp", family, numeric});
  }
  return log;
}

bool Targets::offers(const std::string& target, const std::string& subsystem) const {
  return std::ranges::any_of(storages_, [&](const auto& entry) {
    const Storage& storage = entry.second;
    return storage.is_offered && storage.target == target && storage.subsystem == subsystem;
  });
}

mounts::Superblock superblock_of(const Storage& storage) {
  mounts::Superblock superblock;
  superblock.type = storage.type;
  superblock.uuid = storage.type.empty() ? "" : storage.uuid;
  superblock.bytes = superblock.filesystem_bytes = storage.size;
  superblock.being_written = storage.is_open_here || !storage.writer.empty();
  superblock.has_mmp = storage.has_mmp && storage.type == "ext4";
  superblock.mmp_open = superblock.has_mmp && superblock.being_written;
  if (superblock.mmp_open) superblock.mmp_node = storage.writer.empty() ? kNodeName : storage.writer;
  superblock.stamp = storage.stamp;
  return superblock;
}

}  // namespace spark::sim
