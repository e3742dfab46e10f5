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

// An operator, or a unit that starts with the host, does not wait until it is mounted.
void ask_at_boot(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  const VolumeSettings& volume = state.volumes[dice.pick(state.volumes.size())];
  const Ask asked = dice.pick(3) == 0 ? Ask::Take : Ask::Up;
  const Duration after(20 * dice.pick(100));
  cluster.tell(state.host->name + " loses power, and boots; after " + format_duration(after) + ": " +
               to_string(asked) + " " + volume.name);
  cluster.reboot(state.host->index);
  cluster.start_daemon(state.host->index);
  cluster.pass(after);
  cluster.ask(state.host->index, asked, volume.name);
}

struct Advice {
  HostState* state;
  VolumeSettings* volume;
  const char* words;
};
constexpr char kTake[] = "volumes take", kSetUuid[] = "set `filesystem: {uuid:",
               kRemovePin[] = "remove the volume's file below volumes/";

std::vector<Advice> advice_of(Cluster& cluster) {
  std::vector<Advice> all;
  for (HostState& state : cluster.hosts) {
    if (!state.daemon || state.daemon->is_reloading()) continue;
    for (VolumeSettings& volume : state.volumes) {
      const auto found = state.daemon->volumes().find(volume.name);
      if (!found) continue;
      for (const char* words : {kTake, kSetUuid, kRemovePin}) {
        if (found->status().reason.find(words) != std::string::npos) all.push_back({&state, &volume, words});
      }
    }
  }
  return all;
}

// An operator does what a refused volume says.
void follow_advice(Cluster& cluster, Dice& dice) {
  const auto all = advice_of(cluster);
  if (all.empty()) return;
  const auto [state, volume, words] = all[dice.pick(all.size())];
  const std::string who = state->host->name + ": ";
  if (words == kTake) {
    cluster.tell(who + "volumes take " + volume->name + ", as its reason says");
    cluster.ask(state->host->index, Ask::Take, volume->name);
  } else if (words == kSetUuid) {
    volume->uuid = cluster.disk_of(*volume).fs.uuid;
    state->meant.erase(volume->name);
    cluster.tell(who + "the configuration gets the uuid of " + volume->name + ", as its reason says");
    cluster.reload(state->host->index);
  } else {
    state->meant.erase(volume->name);
    state->host->state.pins.erase(volume->name);
    cluster.tell(who + "the file of " + volume->name + " in the state folder is removed, as its reason says");
  }
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
  if (what == Change::Holds) volume.holds_since = cluster.time.steady();
  if (what == Change::Uuid) state.meant.erase(volume.name);
  cluster.tell(state.host->name + ": the configuration changes: " + kWords[static_cast<std::size_t>(what)] +
               " of " + volume.name);
  cluster.reload(state.host->index);
}

constexpr std::array kOperatorSteps = {
    VolumeAction{"up", 9, up},
    VolumeAction{"down", 8, down},
    VolumeAction{"take", 3, take},
    VolumeAction{"publish", 8, publish},
    VolumeAction{"reload", 6, reload},
    VolumeAction{"follow-advice", 9, follow_advice},
    VolumeAction{"ask-at-boot", 3, ask_at_boot},
};

}  // namespace

std::span<const VolumeAction> operator_steps() {
  return kOperatorSteps;
}

}  // namespace spark::histories
