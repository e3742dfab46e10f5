// A fabric, a disk and a mount table in memory, with scripts for what goes wrong. Records what was touched.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "daemon/sim/reservations.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark::volumes {

struct FakeWorld {
  static constexpr const char* kNode = "spark1";
  static constexpr const char* kHostId = "11111111-2222-3333-4444-555555555555";
  static constexpr int kRootMount = 20;
  static constexpr const char* kOtherAddress = "10.0.0.9";    // of another target
  static constexpr std::uint64_t kKey = 11, kFormerKey = 10;  // with the board's number, and without
  inline static const nvmetcp::LocalRegistrant kUs{kHostId, kKey, kFormerKey};
  static constexpr const char* kHost = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";

  // The target.
  bool target_up = true, has_discovery = true;
  std::vector<nvmetcp::OfferedSubsystem> offers;
  mounts::Superblock superblock;
  sim::KeptReservations reservations{false, {}, {}};
  std::optional<Error> connect_error, mount_error, unmount_error, timers_error, publish_error, writable_error;
  std::optional<Error> unsecured;              // a path without what is asked for
  std::optional<mounts::Published> published;  // in the file system
  std::optional<nvmetcp::Smart> smart;         // none: the target has no such page

  // This host.
  std::vector<nvmetcp::Controller> controllers;
  std::optional<nvmetcp::Namespace> block;
  std::optional<nvmetcp::Namespace> hidden;  // found when it is looked for again
  std::vector<mounts::Mount> mounts;
  // Of controllers that do not lead to `block`: what they lead to.
  std::map<std::string, std::optional<nvmetcp::Namespace>> others;
  std::map<dev_t, std::string> owners;  // device → subsystem; absent: the device is gone
  std::optional<FilesystemIdentity> pinned;
  unsigned silent_probes = 0;  // so many of the next ones get no answer
  bool mount_table_readable = true, answers = true, shared = false;
  bool shut_down = false, stuck = false;
  unsigned io_per_look = 0;   // of other programs, that ended since it was asked for the last time
  bool mount_answers = true;  // not while other programs hold up who asks
  std::string mounted_uuid;   // as the kernel has it
  Result<Intent> intent;      // on the drive
  std::optional<Error> intent_error;
  double probe_us = 250;
  std::string namespace_uuid;
  json::object history;
  std::string users;                                      // of a mount that is detached
  std::string open_files;                                 // of a mount that is there: who
  std::map<std::string, nvmetcp::ConnectOptions> timers;  // controller → what was set last
  nvmetcp::ConnectOptions last_options;                   // of the last connect
  std::function<void()> while_connecting = [] {}, while_mounting = [] {}, while_publishing = [] {},
                        while_unmounting = [] {};
  Duration unmount_takes{0}, intent_takes{0};
  unsigned publish_takes = 1;  // turns of the loop
  mounts::MountRequest last_mount;
  mounts::Guard guard{true, "", {}};  // of the mount point
  std::optional<Error> guard_error;
  std::vector<bool> guarded;  // each time: whether the volume was mounted there
  dev_t next_device = 100;
  int next_controller = 7, next_mount = kRootMount + 1;
  std::set<std::string> unreachable;         // addresses
  std::map<std::string, std::string> names;  // of targets → address

  std::vector<std::string> touched;  // "discover", "connect", "mount ro", …, in order

  void offer(const std::string& nqn, const std::string& address, std::uint16_t port) {
    nvmetcp::OfferedSubsystem offered;
    offered.nqn = nqn;
    offered.transport = "tcp";
    offered.portal = {address, port};
    offers.push_back(offered);
  }
  void set_link(const std::string& state) {
    for (auto& controller : controllers) controller.state = state;
  }
  // The kernel gave up: controller, namespace and device vanish; the mount stays behind, dead.
  void lose_device() {
    controllers.clear();
    block.reset();
    owners.clear();
  }
  // One more path, or the one that is there; the first brings the device.
  std::string plug_in(const std::string& nqn, const nvmetcp::Portal& portal = {"10.0.0.5", 4420}) {
    for (const auto& controller : controllers) {
      if (controller.portal == portal) return controller.name;
    }
    nvmetcp::Controller controller;
    controller.name = "nvme" + std::to_string(next_controller++);
    controller.subsystem = nqn;
    controller.transport = "tcp";
    controller.state = "live";
    controller.portal = portal;
    controller.host_nqn = kHost;
    if (portal.address == kOtherAddress) return plug_in_other(nqn, !block);
    controllers.push_back(controller);
    if (block) return controller.name;
    if (is_other_there()) others[controller.name].reset();
    if (is_other_there()) return controller.name;
    nvmetcp::Namespace made;
    made.device = "nvme7n1";
    made.nsid = 1;
    made.uuid = namespace_uuid;
    made.device_number = next_device++;
    block = made;
    owners[made.device_number] = nqn;
    return controller.name;
  }
  // A connection to another target that offers the same NQN. As the kernel has it: its namespace of the same
  // number is there (`first`), or is not, since ours was there before.
  std::string plug_in_other(const std::string& nqn, bool first = true) {
    nvmetcp::Controller controller;
    controller.name = "nvme" + std::to_string(next_controller++);
    controller.subsystem = nqn;
    controller.transport = "tcp";
    controller.state = "live";
    controller.portal = {kOtherAddress, 4420};
    controller.host_nqn = kHost;
    controllers.push_back(controller);
    auto& its = others[controller.name];
    if (!first) return controller.name;
    its = nvmetcp::Namespace{};
    its->device = "nvme9n1";
    its->nsid = 1;
    its->device_number = next_device++;
    owners[its->device_number] = nqn;
    return controller.name;
  }
  // Its namespace of our number is there: the kernel shows none of ours beside it.
  bool is_other_there() const {
    return std::ranges::any_of(others, [](const auto& one) { return one.second.has_value(); });
  }
  void unplug(const std::string& address) {
    std::erase_if(controllers, [&](const auto& controller) { return controller.portal.address == address; });
    forget_lost();
  }
  // Disks that no controller leads to any more.
  void forget_lost() {
    const auto is_there = [&](const auto& name) {
      return std::ranges::find(controllers, name, &nvmetcp::Controller::name) != controllers.end();
    };
    for (auto other = others.begin(); other != others.end();) {
      if (other->second && !is_there(other->first)) owners.erase(other->second->device_number);
      other = is_there(other->first) ? std::next(other) : others.erase(other);
    }
    const bool is_led_to = std::ranges::any_of(
        controllers, [&](const auto& controller) { return !others.contains(controller.name); });
    if (!block || is_led_to) return;
    owners.erase(block->device_number);
    block.reset();
  }
  // Of what a mount is made of: "/dev/nvme7n1".
  dev_t number_of(const std::string& device) const {
    for (const auto& [controller, other] : others) {
      if (other && device == "/dev/" + other->device) return other->device_number;
    }
    return block ? block->device_number : 0;
  }
  void mount(const std::string& target, bool read_only, dev_t device,
             const std::string& source = "/dev/nvme7n1", const std::string& type = "ext4") {
    mounts::Mount mounted;
    mounted.source = source;
    mounted.target = target;
    mounted.type = type;
    mounted.options = read_only ? "ro,noatime" : "rw,noatime";
    mounted.super_options = read_only ? "ro,norecovery" : "rw";
    mounted.device_number = device;
    mounted.id = next_mount++;
    const mounts::Mount* below = mounts::mounted_at(mounts, target);
    mounted.parent_id = below == nullptr ? kRootMount : below->id;
    mounts.push_back(mounted);
  }
  std::ptrdiff_t count(const std::string& what) const {
    return std::count(touched.begin(), touched.end(), what);
  }
};

}  // namespace spark::volumes
