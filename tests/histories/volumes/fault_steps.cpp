#include <algorithm>
#include <array>

#include "tests/histories/volumes/steps.hpp"

namespace spark::histories {
namespace {

Target& pick_target(Cluster& cluster, Dice& dice) {
  auto& targets = cluster.network.targets;
  return targets[dice.pick(targets.size())];
}

std::string place(const Target& target) {
  return "target " + target.name;
}

void link_down(Cluster& cluster, Dice& dice) {
  const std::size_t host = dice.pick(kHosts);
  if (!std::exchange(cluster.network.has_link[host], false)) return;
  cluster.tell(cluster.hosts[host].host->name + ": the link goes down");
  cluster.network_changed(false);
}

void link_up(Cluster& cluster, Dice& dice) {
  const std::size_t host = dice.pick(kHosts);
  if (std::exchange(cluster.network.has_link[host], true)) return;
  cluster.tell(cluster.hosts[host].host->name + ": the link is back");
  cluster.network_changed(false);
}

void forget_reservations(Cluster& cluster, const Target& target) {
  for (Disk& disk : cluster.network.disks) {
    for (const auto& [subsystem, disks] : target.meant) {
      for (const auto& [nsid, its] : disks) {
        if (its == &disk && !disk.keeps_reservations) disk.reservations.restart();
      }
    }
  }
}

void restart_target(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (!target.is_up) return;
  static constexpr std::array kAway = {300, 2'000, 10'000, 40'000};
  const Duration away(kAway[dice.pick(kAway.size())]);
  cluster.tell(place(target) + " restarts, which takes " + format_duration(away));
  target.is_up = false;
  cluster.network_changed(true);
  cluster.pass(away);
  forget_reservations(cluster, target);
  target.is_up = true;
  cluster.network_changed(true);
}

void target_away(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (!std::exchange(target.is_up, false)) return;
  cluster.tell(place(target) + " goes away");
  cluster.network_changed(dice.pick(2) == 0);
}

void target_back(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (std::exchange(target.is_up, true)) return;
  cluster.tell(place(target) + " is back");
  if (dice.pick(2) == 0) forget_reservations(cluster, target);
  cluster.network_changed(true);
}

void remove_controllers(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  std::vector<std::string> names;
  for (const Connection& one : state.host->driver.connections()) names.push_back(one.shown.name);
  if (names.empty()) return;
  cluster.tell(state.host->name + ": the kernel gives up its connections, and removes the controllers");
  for (const std::string& name : names) state.host->driver.remove(name, Actor::Fault);
}

void withdraw(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  auto subsystem = target.offered.begin();
  std::advance(subsystem, dice.pick(target.offered.size()));
  if (subsystem == target.offered.end() || subsystem->second.empty()) return;
  cluster.tell(place(target) + " withdraws namespace " + std::to_string(subsystem->second.begin()->first) +
               " of " + subsystem->first);
  subsystem->second.erase(subsystem->second.begin());
  cluster.network_changed(false);
}

void withdraw_subsystem(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (target.offered.empty()) return;
  auto subsystem = target.offered.begin();
  std::advance(subsystem, dice.pick(target.offered.size()));
  cluster.tell(place(target) + " withdraws subsystem " + subsystem->first);
  target.offered.erase(subsystem);
  cluster.network_changed(true);
}

// Another disk has the namespace's place, perhaps with its identity, as a restored copy may.
void replace_disk(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (target.offered.empty()) return;
  auto subsystem = target.offered.begin();
  std::advance(subsystem, dice.pick(target.offered.size()));
  if (subsystem->second.empty()) return;
  Disk*& place_of_it = subsystem->second.begin()->second;
  Disk other;
  other.name = "another disk";
  other.ns_uuid = dice.pick(3) == 0 ? place_of_it->ns_uuid : "namespace-of-another";
  other.bytes = place_of_it->bytes;
  other.fs.type = "ext4";
  other.fs.uuid = cluster.next_uuid();
  other.fs.bytes = place_of_it->fs.bytes;
  other.reservations.offers = place_of_it->reservations.offers;
  cluster.network.disks.push_back(std::move(other));
  place_of_it = &cluster.network.disks.back();
  cluster.tell(place(target) + " offers another disk in the place of " + subsystem->first);
  cluster.network_changed(dice.pick(2) == 0);
}

void put_back(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (target.offered == target.meant) return;
  target.offered = target.meant;
  cluster.tell(place(target) + " offers its own disks again");
  cluster.network_changed(dice.pick(2) == 0);
}

void move_address(Cluster& cluster, Dice& dice) {
  Target& target = pick_target(cluster, dice);
  if (target.host_name.empty()) return;
  // Without identities the kernel can't tell whose disk the new address leads to, and the daemon does not
  // follow (Paths::may_lead_elsewhere).
  for (const auto& [subsystem, disks] : target.meant) {
    for (const auto& [nsid, disk] : disks) {
      if (disk->ns_uuid.empty()) return;
    }
  }
  target.address = "10.0.0." + std::to_string(20 + dice.pick(200));
  cluster.tell(place(target) + " moves to " + target.address);
  cluster.network_changed(true);
}

void dns_dies(Cluster& cluster, Dice& dice) {
  const std::size_t host = dice.pick(kHosts);
  if (std::exchange(cluster.network.has_dns[host], false))
    cluster.tell(cluster.hosts[host].host->name + ": the name service dies");
}

void dns_lives(Cluster& cluster, Dice& dice) {
  const std::size_t host = dice.pick(kHosts);
  if (!std::exchange(cluster.network.has_dns[host], true))
    cluster.tell(cluster.hosts[host].host->name + ": the name service lives again");
}

void kill_daemon(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  if (!state.daemon) return;
  cluster.pass(Duration(dice.pick(12'000)));
  cluster.tell(state.host->name + ": the daemon is killed");
  cluster.kill_daemon(state.host->index);
  if (dice.pick(3) == 0) return;
  cluster.pass(Duration(1'000));
  cluster.tell(state.host->name + ": the daemon starts");
  cluster.start_daemon(state.host->index);
}

void start_daemon(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  if (state.daemon) return;
  cluster.tell(state.host->name + ": the daemon starts");
  cluster.start_daemon(state.host->index);
}

void reboot(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  cluster.tell(state.host->name + " loses power, and boots");
  cluster.reboot(state.host->index);
  cluster.pass(Duration(20'000));
  cluster.start_daemon(state.host->index);
}

void fill_state(Cluster& cluster, Dice& dice) {
  Host& host = *cluster.hosts[dice.pick(kHosts)].host;
  if (!std::exchange(host.state.is_full, true)) cluster.tell(host.name + ": the state folder is full");
}

void empty_state(Cluster& cluster, Dice& dice) {
  Host& host = *cluster.hosts[dice.pick(kHosts)].host;
  if (std::exchange(host.state.is_full, false)) cluster.tell(host.name + ": the state folder has room");
}

void wait(Cluster& cluster, Dice& dice) {
  static constexpr std::array kWaits = {1'000, 5'000, 12'000, 35'000, 90'000, 200'000};
  const Duration waits(kWaits[dice.pick(kWaits.size())]);
  cluster.tell(format_duration(waits) + " pass");
  cluster.pass(waits);
}

constexpr std::array kFaultSteps = {
    VolumeAction{"link-down", 6, link_down},
    VolumeAction{"link-up", 8, link_up},
    VolumeAction{"restart-target", 8, restart_target},
    VolumeAction{"target-away", 2, target_away},
    VolumeAction{"target-back", 4, target_back},
    VolumeAction{"remove-controllers", 5, remove_controllers},
    VolumeAction{"withdraw", 2, withdraw},
    VolumeAction{"withdraw-subsystem", 2, withdraw_subsystem},
    VolumeAction{"replace-disk", 2, replace_disk},
    VolumeAction{"put-back", 5, put_back},
    VolumeAction{"move-address", 2, move_address},
    VolumeAction{"dns-dies", 3, dns_dies},
    VolumeAction{"dns-lives", 3, dns_lives},
    VolumeAction{"kill-daemon", 6, kill_daemon},
    VolumeAction{"start-daemon", 6, start_daemon},
    VolumeAction{"reboot", 3, reboot},
    VolumeAction{"fill-state", 2, fill_state},
    VolumeAction{"empty-state", 3, empty_state},
    VolumeAction{"wait", 14, wait},
};

}  // namespace

std::span<const VolumeAction> fault_steps() {
  return kFaultSteps;
}

void end_faults(Cluster& cluster) {
  cluster.tell("all faults end");
  Network& network = cluster.network;
  network.has_link.fill(true);
  network.has_dns.fill(true);
  for (Target& target : network.targets) {
    target.is_up = true;
    target.offered = target.meant;
  }
  for (HostState& state : cluster.hosts) {
    MountTree& mounts = state.host->mounts;
    mounts.close_files();
    state.cleared = cluster.time.steady();
    // What stays is a whole mount at a volume's own place: its daemon has to deal with it.
    const auto is_in_the_way = [&](const MountEntry& one) {
      const bool is_in_place = std::ranges::any_of(state.volumes, [&](const VolumeSettings& volume) {
        return one.super && one.root == "/" && one.shown.target == volume.mount &&
               one.super->head->disk == &cluster.disk_of(volume);
      });
      return one.by_hand && !is_in_place;
    };
    mounts.remove_if(is_in_the_way);
  }
  cluster.network_changed(true);
  for (std::size_t i = 0; i < kHosts; ++i) cluster.start_daemon(i);
}

}  // namespace spark::histories
