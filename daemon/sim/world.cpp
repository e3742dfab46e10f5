#include "daemon/sim/world.hpp"

#include <algorithm>
#include <utility>

#include "nvmetcp/sysfs/registry.hpp"

namespace spark::sim {
namespace {

constexpr char kLogChanged[] = "0x70f002";  // NVMe base specification: the discovery log has changed

}  // namespace

void World::add(const config::Volume& volume) {
  targets_.add(volume);
  refresh_disks();
}

void World::apply(const WorldChange& change) {
  if (const auto* of_target = std::get_if<TargetChange>(&change)) apply_to_target(*of_target);
  if (const auto* of_volume = std::get_if<VolumeChange>(&change)) apply_to_volume(*of_volume);
}

void World::apply_to_target(const TargetChange& change) {
  targets_.apply(change);
  const auto before = controllers_;
  if (change.removes_controllers) {
    std::erase_if(controllers_, [&](const auto& one) { return targets_.concerns(change, one.portal); });
  }
  for (nvmetcp::Controller& controller : controllers_)
    controller.state = targets_.reach(controller.portal) ? "live" : "connecting";
  refresh_disks();
  tell(before, change.target);
}

void World::apply_to_volume(const VolumeChange& change) {
  targets_.apply(change);
  Storage& storage = targets_.storage_of(change.volume);
  storage.users = change.users.value_or(storage.users);
  storage.connects = change.connects.value_or(storage.connects);
  storage.mounts = change.mounts.value_or(storage.mounts);
  if (change.mount_end == MountEnd::ShutDown) storage.is_shut_down = true;
  if (change.mount_end == MountEnd::Gone) {
    const auto mounted = std::ranges::find_if(
        mounts_, [&](const mounts::Mount& mount) { return behind(mount.source) == &storage; });
    if (mounted != mounts_.end()) unmount(std::filesystem::path(mounted->target));
  }
  if (!change.offered || storage.target.empty()) return;
  const auto before = controllers_;
  // A target that no longer exports a subsystem removes its controllers.
  if (!targets_.offers(storage.target, storage.subsystem))
    std::erase_if(controllers_, [&](const auto& one) { return leads_to(one, storage); });
  refresh_disks();
  tell(before, storage.target);
}

// Listeners may connect other controllers meanwhile, so `controllers` is a copy.
void World::tell(const std::vector<nvmetcp::Controller>& controllers, const std::string& target) {
  for (const nvmetcp::Controller& one : controllers) {
    if (targets_.target_at(one.portal) == target)
      heard_({one.name, "change", "", one.is_discovery ? kLogChanged : "", false});
  }
}

Result<nvmetcp::Connection> World::connect(const std::string& subsystem, const nvmetcp::Portal& portal,
                                           const std::string& interface) {
  const nvmetcp::Portal numeric = Targets::resolve(portal);
  for (const nvmetcp::Controller& known : controllers_) {
    if (known.subsystem != subsystem || known.portal != numeric) continue;
    if (known.is_live()) return nvmetcp::Connection{known.name, Change::AlreadyThere, {}};
    return fail(Errc::Unavailable,
                known.name + " stands for " + to_string(portal) + " already, and is " + known.state);
  }
  if (auto reached = targets_.reach(portal); !reached) return reached.take_error();
  nvmetcp::Controller controller;
  controller.is_discovery = subsystem == nvmetcp::kDiscoveryNqn;
  if (!controller.is_discovery && !targets_.offers(targets_.target_at(portal), subsystem))
    return fail(Errc::NotFound, to_string(portal) + " has no subsystem " + subsystem);
  controller.name = "nvme-sim" + std::to_string(next_controller_++);
  controller.subsystem = subsystem;
  controller.transport = "tcp";
  controller.state = "live";
  controller.portal = numeric;
  controller.interface = interface;
  controller.host_nqn = kHostNqn;
  controller.host_id = kHostId;
  controller.owner = nvmetcp::kOwner;
  controllers_.push_back(controller);
  refresh_disks();
  return nvmetcp::Connection{controller.name, Change::Done, {}};
}

Change World::disconnect(const std::string& controller) {
  const auto removed = std::erase_if(controllers_, [&](const auto& one) { return one.name == controller; });
  refresh_disks();
  return removed > 0 ? Change::Done : Change::AlreadyThere;
}

bool World::leads_to(const nvmetcp::Controller& controller, const Storage& storage) const {
  return storage.source.empty() && controller.subsystem == storage.subsystem &&
         targets_.target_at(controller.portal) == storage.target;
}

void World::refresh_disks() {
  for (auto& entry : targets_.storages()) {
    Storage& storage = entry.second;
    const bool is_there = storage.is_offered && std::ranges::any_of(controllers_, [&](const auto& one) {
                            return leads_to(one, storage);
                          });
    if (is_there == !storage.device.empty()) continue;
    const unsigned number = is_there ? next_disk_++ : 0;
    const std::string name = "nvme-sim" + std::to_string(number) + "n" + std::to_string(storage.nsid);
    storage.device = is_there ? name : "";
    storage.device_number = number;
    if (is_there) heard_({name, "add", "", "", true});
  }
}

Result<nvmetcp::Namespace> World::find_namespace(const std::vector<nvmetcp::Controller>& through,
                                                 std::uint32_t nsid) const {
  for (const auto& entry : targets_.storages()) {
    const Storage& storage = entry.second;
    const bool is_below =
        std::ranges::any_of(through, [&](const auto& controller) { return leads_to(controller, storage); });
    if (storage.nsid != nsid || storage.device.empty() || !is_below) continue;
    nvmetcp::Namespace found;
    found.device = storage.device;
    found.nsid = nsid;
    found.bytes = storage.size;
    found.uuid = uuid_of("namespace of " + entry.first);
    found.device_number = storage.device_number;
    return found;
  }
  return fail(Errc::NotFound, "namespace " + std::to_string(nsid) + " is not there");
}

Result<std::string> World::subsystem_of(dev_t device) const {
  for (const auto& [volume, storage] : targets_.storages()) {
    if (!storage.device.empty() && storage.device_number == device) return storage.subsystem;
  }
  return fail(Errc::NotFound, "device " + std::to_string(device) + " is of no subsystem");
}

bool World::is_live(const Storage& storage) const {
  if (!storage.source.empty()) return true;
  return std::ranges::any_of(controllers_, [&](const nvmetcp::Controller& controller) {
    return controller.is_live() && leads_to(controller, storage);
  });
}

Storage* World::behind(const std::string& source) {
  for (auto& [volume, storage] : targets_.storages()) {
    const bool is_disk = !storage.device.empty() && source == "/dev/" + storage.device;
    if (is_disk || (!storage.source.empty() && source == storage.source)) return &storage;
  }
  return nullptr;
}

Storage* World::mounted_at(const std::filesystem::path& target) {
  const mounts::Mount* mount = mounts::mounted_at(mounts_, target);
  return mount == nullptr ? nullptr : behind(mount->source);
}

void World::mount(const mounts::MountRequest& request) {
  const bool is_nfs = request.type == "nfs";
  Storage* storage = behind(request.source);
  mounts::Mount made;
  made.source = request.source;
  made.target = request.target;
  made.type = is_nfs ? "nfs4" : request.type;
  made.options = request.read_only ? "ro" : "rw";
  made.super_options = made.options;
  if (request.read_only && !request.keeps_journal && !is_nfs) made.super_options += ",norecovery";
  for (const std::string& option : request.options) made.options += "," + option;
  made.device_number = storage == nullptr ? 0 : storage->device_number;
  made.id = next_mount_++;
  const mounts::Mount* below = mounts::mounted_at(mounts_, request.target);
  made.parent_id = below == nullptr ? 0 : below->id;
  mounts_.push_back(std::move(made));
  if (storage == nullptr) return;
  storage->is_shut_down = false;
  storage->mounted_uuid = storage->uuid;
  if (request.read_only || is_nfs) return;
  storage->is_open_here = true;
  storage->writer.clear();  // this host took over from it
  ++storage->stamp;
}

void World::unmount(const std::filesystem::path& target) {
  Storage* storage = mounted_at(target);
  if (storage != nullptr && !std::exchange(storage->is_shut_down, false) &&
      std::exchange(storage->is_open_here, false))
    ++storage->stamp;
  const mounts::Mount* top = mounts::mounted_at(mounts_, target);
  if (top != nullptr) mounts_.erase(mounts_.begin() + (top - mounts_.data()));
}

void World::set_read_only(const std::filesystem::path& target, bool read_only) {
  for (mounts::Mount& mount : mounts_) {
    if (mount.target != target) continue;
    for (std::string* options : {&mount.options, &mount.super_options})
      options->replace(0, 2, read_only ? "ro" : "rw");
  }
  Storage* storage = mounted_at(target);
  if (storage == nullptr) return;
  storage->is_open_here = !read_only;
  ++storage->stamp;
}

}  // namespace spark::sim
