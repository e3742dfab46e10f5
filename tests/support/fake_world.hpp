// A fabric, a disk and a mount table in memory, with scripted failures. Records the operations.
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
  static constexpr const char* kOtherAddress = "10.0.0.9";    // of the second target
  static constexpr std::uint64_t kKey = 11, kFormerKey = 10;  // with the board's number, and without it
  inline static const nvmetcp::LocalRegistrant kUs{kHostId, kKey, kFormerKey};
  static constexpr const char* kHost = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";

  // The target.
  bool target_up = true, has_discovery = true;
  std::vector<nvmetcp::OfferedSubsystem> offers;
  mounts::Superblock superblock;
  sim::KeptReservations reservations{false, {}, {}};
  std::optional<Error> connect_error, mount_error, unmount_error, timers_error, publish_error, writable_error,
      superblock_error, stop_error, disconnect_error;
  std::optional<Error> unsecured;              // for a path without the configured security
  std::optional<mounts::Published> published;  // in the file system
  bool is_written_since = false;
  std::optional<nvmetcp::Smart> smart;  // no value: the target does not support the log page

  // This host.
  std::vector<nvmetcp::Controller> controllers;
  std::optional<nvmetcp::Namespace> block;
  std::optional<nvmetcp::Namespace> hidden;  // found on the next lookup
  std::vector<mounts::Mount> mounts;
  // Controllers that do not lead to `block`, with their namespaces.
  std::map<std::string, std::optional<nvmetcp::Namespace>> others;
  std::map<dev_t, std::string> owners;   // device → subsystem; absent: the device is gone
  std::map<dev_t, std::uint32_t> nsids;  // where it is not 1
  std::optional<FilesystemIdentity> pinned;
  std::optional<Error> pin_error;  // its record can't be read
  unsigned silent_probes = 0;      // the number of probes without an answer, from the next one on
  bool mount_table_readable = true, answers = true, shared = false;
  bool shut_down = false, stuck = false;
  unsigned io_per_look = 0;      // I/Os by other programs completed between two checks
  unsigned io_looks = 0;         // at those counters, of which each reads files
  bool mount_answers = true;     // false while other programs block the caller
  std::string mounted_uuid;      // as reported by the kernel
  std::string not_writable;      // why a published file system stays read-only
  bool published_alone = false;  // with multi-mount protection only
  Result<Intent> intent;         // on the drive
  std::optional<Error> intent_error;
  double probe_us = 250;
  std::string namespace_uuid;
  bool flush_waits = false;  // until writing is stopped
  std::map<Record, json::object> records;
  std::string users;                                      // of a detached mount
  std::string mount_warning;                              // of the next mounts
  std::string open_files;                                 // users of an existing mount
  std::map<std::string, nvmetcp::ConnectOptions> timers;  // controller → its last settings
  nvmetcp::ConnectOptions last_options;                   // of the last connect
  std::function<void()> while_connecting = [] {}, while_mounting = [] {}, while_publishing = [] {},
                        while_flushing = [] {}, while_unmounting = [] {}, while_reserving = [] {},
                        while_disconnecting = [] {}, while_confirming = [] {}, while_probing = [] {};
  Duration unmount_takes{0}, intent_takes{0};
  unsigned publish_takes = 1, probe_takes = 0, save_takes = 0;  // in turns of the loop
  mounts::MountRequest last_mount;
  mounts::Guard guard{true, "", {}};  // for the mount point
  std::optional<Error> guard_error;
  std::vector<bool> guarded;  // one entry per call: whether the volume was mounted there
  dev_t next_device = 100;
  int next_controller = 7, next_mount = kRootMount + 1;
  std::set<std::string> unreachable;                            // addresses
  std::map<std::string, std::vector<std::string>> differences;  // address → options that are not applied
  bool is_state_full = false;
  std::map<std::string, std::string> names;  // host name of a target → address

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
  // The kernel gave up: controller, namespace and device are gone; the dead mount remains.
  void lose_device() {
    controllers.clear();
    block.reset();
    owners.clear();
  }
  // Adds a path, or returns the existing one; the first path brings the device.
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
  // Connects another target that offers the same NQN. As in the kernel, its namespace appears if it is the
  // `first` with this number, and stays hidden if ours was there before.
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
  // True if the other target's namespace is present: then the kernel does not show ours with the same number.
  bool is_other_there() const {
    return std::ranges::any_of(others, [](const auto& one) { return one.second.has_value(); });
  }
  void unplug(const std::string& address) {
    std::erase_if(controllers, [&](const auto& controller) { return controller.portal.address == address; });
    forget_lost();
  }
  // Removes disks without a controller.
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
  // The device number of a mount source such as "/dev/nvme7n1".
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
