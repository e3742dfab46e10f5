#include <algorithm>
#include <array>

#include "tests/histories/volumes/steps.hpp"

namespace spark::histories {
namespace {

void ask(Cluster& cluster, Dice& dice, Ask asked) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  const VolumeSettings& volume = state.volumes[dice.pick(state.volumes.size())];
  if (!state.daemon || !state.daemon->volumes().find(volume.name)) return;
  cluster.tell(state.host->name + ": " + to_string(asked) + " " + volume.name);
  cluster.ask(state.host->index, asked, volume.name);
}

void up(Cluster& cluster, Dice& dice) {
  ask(cluster, dice, Ask::Up);
}

void down(Cluster& cluster, Dice& dice) {
  ask(cluster, dice, Ask::Down);
}

void take(Cluster& cluster, Dice& dice) {
  ask(cluster, dice, Ask::Take);
}

void publish(Cluster& cluster, Dice& dice) {
  ask(cluster, dice, dice.pick(4) == 3 ? Ask::PublishThenWrite : Ask::Publish);
}

// What the hint says in "remove the volume's file below volumes/ in the state folder".
void remove_pin(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  const VolumeSettings& volume = state.volumes[dice.pick(state.volumes.size())];
  const auto found = state.daemon ? state.daemon->volumes().find(volume.name) : nullptr;
  const bool is_advised =
      found && found->status().reason.find("remove the volume's file") != std::string::npos;
  if (!is_advised || state.host->state.pins.erase(volume.name) == 0) return;
  state.meant.erase(volume.name);
  cluster.tell(state.host->name + ": an operator removes the volume's file in the state folder");
}

enum class Change { Uuid, Access, Place, Presence, Fence, Holds };

void change(VolumeSettings& volume, Change what, const Disk& disk, Dice& dice) {
  static constexpr std::array kFences = {"auto", "reservation", "mmp", "none"};
  switch (what) {
    case Change::Uuid:
      volume.uuid = volume.uuid == disk.fs.uuid ? "" : disk.fs.uuid;
      return;
    case Change::Access:
      volume.is_exclusive = !volume.is_exclusive;
      return;
    case Change::Place:
      volume.mount = volume.mount.ends_with("-2") ? volume.mount.substr(0, volume.mount.size() - 2)
                                                  : volume.mount + "-2";
      return;
    case Change::Presence:
      volume.is_configured = !volume.is_configured;
      return;
    case Change::Fence:
      volume.fence = kFences[dice.pick(kFences.size())];
      return;
    case Change::Holds:
      volume.holds = !volume.holds;
  }
}

void reload(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  if (!state.daemon || state.daemon->is_reloading()) return;
  VolumeSettings& volume = state.volumes[dice.pick(state.volumes.size())];
  static constexpr std::array kChanges = {Change::Uuid,     Change::Uuid,  Change::Access, Change::Place,
                                          Change::Presence, Change::Fence, Change::Holds};
  static constexpr std::array kWords = {"uuid", "access", "mount", "presence", "fence", "on_loss"};
  const Change what = kChanges[dice.pick(kChanges.size())];
  const VolumeSettings before = volume;
  change(volume, what, cluster.disk_of(volume), dice);
  if (!cluster.config_of(state.host->index)) {
    volume = before;
    return;
  }
  if (what == Change::Uuid) state.meant.erase(volume.name);
  cluster.tell(state.host->name + ": the configuration changes: " + kWords[static_cast<std::size_t>(what)] +
               " of " + volume.name);
  cluster.reload(state.host->index);
}

constexpr std::array kOperatorSteps = {
    VolumeAction{"up", 9, up},         VolumeAction{"down", 8, down},
    VolumeAction{"take", 6, take},     VolumeAction{"publish", 6, publish},
    VolumeAction{"reload", 6, reload}, VolumeAction{"remove-pin", 3, remove_pin},
};

}  // namespace

std::span<const VolumeAction> operator_steps() {
  return kOperatorSteps;
}

}  // namespace spark::histories
