#include "tests/histories/volumes/cluster.hpp"

#include <algorithm>

#include "daemon/config/parse.hpp"

namespace spark::histories {
namespace {

constexpr Duration kObserved{5'000};
constexpr Duration kSees{15'000}, kStarts{5'000};  // a daemon: a probe's period and deadline; its first probe
constexpr std::chrono::minutes kTakesEffect{5};    // a new configuration
constexpr Bytes kDiskBytes = 100 * kGiB;
const WallTime kStart = WallTime(std::chrono::seconds(1'800'000'000));

NvmeDriver::Events events_of(HostState& state) {
  NvmeDriver::Events events;
  events.gone = [&state](const HeadPtr& head, Actor by) {
    if (state.host) state.host->mounts.device_gone(head, by);
  };
  events.changed = [&state](const std::string& controller) {
    if (state.host) state.host->mounts.link_changed();
    if (state.daemon) state.daemon->controller_changed(controller);
  };
  events.namespace_added = [&state] {
    if (state.daemon) state.daemon->namespace_added();
  };
  return events;
}

std::string yaml_of(const VolumeSettings& volume) {
  std::string text = "  " + volume.name + ":\n    target: " + volume.target +
                     "\n    subsystem: " + volume.subsystem +
                     "\n    namespace: " + std::to_string(volume.nsid) + "\n    mount: " + volume.mount +
                     "\n    options: [noatime]\n";
  if (!volume.uuid.empty()) text += "    filesystem: {uuid: " + volume.uuid + "}\n";
  if (volume.is_exclusive) text += "    access: exclusive\n    fence: " + volume.fence + "\n";
  if (volume.holds) text += "    on_loss: hold\n";
  return text;
}

}  // namespace

// The next daemon does not know of a `down` that could not be recorded, as its answer said.
void HostState::end_daemon() {
  if (daemon)
    for (const std::string& volume : daemon->unrecorded()) {
      wishes[volume] = Wish::Unknown;
      for (Connection& one : host->driver.connections()) one.while_down = false;
      // A mount at its place counts as its own for a daemon that has it up.
      const auto its = std::ranges::find(volumes, volume, &VolumeSettings::name);
      for (MountEntry& one : host->mounts.entries())
        if (one.shown.target == its->mount) one.while_down = false;
    }
  daemon.reset();
}

Wish HostState::wish(const std::string& volume) const {
  const auto found = wishes.find(volume);
  return found == wishes.end() ? Wish::Up : found->second;
}

Cluster::Cluster(std::uint64_t seed, const Story& told)
    : time(kStart), random(seed), story(told), scene{time, random, judge, story} {
  make_targets();
  for (std::size_t i = 0; i < kHosts; ++i)
    hosts[i].host = std::make_unique<Host>(scene, network, i, events_of(hosts[i]), &last_super);
  for (std::size_t i = 0; i < kHosts; ++i)
    hosts[i].host->file_systems.on_open = [this, i](const Super& opened) { check_alone(i, opened); };
  make_volumes();
  if (are_two_of_one_namespace_) {
    // Once `config check` refuses it, no history begins so.
    if (config_of(0)) {
      judge.blame("two-volumes-of-one-namespace");
    } else {
      for (HostState& one : hosts) one.volumes.pop_back();
    }
  }
  note_fences();
  for (HostState& one : hosts) {
    one.host->holds_dead = [this, &one](const std::string& mount) {
      return std::ranges::any_of(one.volumes, [&](const VolumeSettings& volume) {
        return volume.mount == mount && volume.holds && time.steady() - volume.holds_since > kTakesEffect;
      });
    };
  }
  for (std::size_t i = 0; i < kHosts; ++i) start_daemon(i);
}

Cluster::~Cluster() {
  for (HostState& one : hosts) one.daemon.reset();
}

std::string Cluster::next_uuid() {
  const std::string number = std::to_string(++last_uuid);
  return "aaaaaaaa-bbbb-cccc-dddd-" + std::string(12 - number.size(), '0') + number;
}

void Cluster::make_targets() {
  const std::size_t count = 1 + (random.is_one_in(3) ? 1 : 0);
  static constexpr const char* kNames[] = {"rose", "spare"};
  for (std::size_t i = 0; i < count; ++i) {
    Target target;
    target.name = kNames[i];
    target.address = "10.0.0." + std::to_string(5 + 4 * i);
    if (random.is_one_in(3)) target.host_name = target.name + ".lan";
    network.targets.push_back(std::move(target));
  }
}

// Both hosts have the same volumes, each with access of its own.
void Cluster::make_volumes() {
  static constexpr const char* kNames[] = {"data", "models"};
  static constexpr const char* kMounts[] = {"/mnt/a/data", "/mnt/b/models"};
  static constexpr const char* kFences[] = {"auto", "auto", "auto", "auto", "reservation", "mmp", "none"};
  const std::size_t count = 1 + (random.is_one_in(3) ? 1 : 0);
  for (std::size_t v = 0; v < count; ++v) {
    const std::size_t t = v % network.targets.size();
    Target& target = network.targets[t];
    const bool is_same_namespace = v == 1 && t == 0 && random.is_one_in(12);
    const bool shares = v == 1 && t == 0 && (is_same_namespace || random.is_one_in(2));
    VolumeSettings settings;
    settings.name = kNames[v];
    settings.target = target.name;
    settings.subsystem = shares ? "nqn.data" : std::string("nqn.") + kNames[v];
    settings.nsid = shares && !is_same_namespace ? 2 : 1;
    settings.mount = kMounts[v];
    are_two_of_one_namespace_ = is_same_namespace;
    if (!is_same_namespace) {
      Disk disk;
      disk.name = "disk " + std::to_string(v + 1);
      if (!random.is_one_in(8)) disk.ns_uuid = "namespace-" + std::to_string(v + 1);
      disk.bytes = kDiskBytes;
      disk.fs.type = random.is_one_in(2) ? "ext4" : "xfs";
      disk.fs.uuid = next_uuid();
      disk.fs.bytes = kDiskBytes;
      disk.fs.has_mmp = disk.fs.type == "ext4" && random.is_one_in(2);
      disk.fs.mmp_interval = random.is_one_in(16) ? 63 : 5;
      disk.reservations.offers = random.is_one_in(3) ? false : true;
      disk.keeps_reservations = random.is_one_in(2);
      network.disks.push_back(std::move(disk));
      target.meant[settings.subsystem][settings.nsid] = &network.disks.back();
    }
    const Disk& disk = *target.meant[settings.subsystem][settings.nsid];
    const bool is_pinned = random.is_one_in(3);
    const bool are_both_exclusive = random.is_one_in(2);
    const std::string fence = kFences[random.below(std::size(kFences))];
    for (std::size_t h = 0; h < kHosts; ++h) {
      settings.uuid = is_pinned ? disk.fs.uuid : "";
      settings.is_exclusive = h == 0 ? !random.is_one_in(6) : are_both_exclusive;
      settings.fence = fence;
      settings.holds = random.is_one_in(6);
      hosts[h].volumes.push_back(settings);
      MountTree& mounts = hosts[h].host->mounts;
      const std::string parent = settings.mount.substr(0, settings.mount.rfind('/'));
      for (const std::string& folder : {parent, settings.mount, std::string("/mnt/other")})
        mounts.folders_at(folder).make(folder);
    }
  }
  for (Target& target : network.targets) target.offered = target.meant;
}

void Cluster::note_fences() {
  for (const HostState& one : hosts) {
    for (const VolumeSettings& volume : one.volumes) {
      if (volume.is_exclusive && volume.fence == "none") disk_of(volume).is_unfenced = true;
    }
  }
}

Result<config::Config> Cluster::config_of(std::size_t index) const {
  static std::map<std::string, Result<config::Config>> parsed;
  std::string text = "version: 1\ntargets:\n";
  for (const Target& target : network.targets)
    text += "  " + target.name +
            ": {address: " + (target.host_name.empty() ? target.address : target.host_name) + "}\n";
  std::string volumes;
  for (const VolumeSettings& volume : hosts[index].volumes) {
    if (volume.is_configured) volumes += yaml_of(volume);
  }
  if (!volumes.empty()) text += "volumes:\n" + volumes;
  const auto known = parsed.find(text);
  if (known != parsed.end()) return known->second;
  return parsed.emplace(text, config::parse(text, "spark-stage.yaml")).first->second;
}

Target& Cluster::target_of(const VolumeSettings& volume) {
  return *std::ranges::find(network.targets, volume.target, &Target::name);
}

Disk& Cluster::disk_of(const VolumeSettings& volume) {
  return *target_of(volume).meant.at(volume.subsystem).at(volume.nsid);
}

void Cluster::pass(Duration duration) {
  while (duration > Duration(0)) {
    const Duration part = std::min(duration, kObserved);
    time.run_for(part);
    duration -= part;
    for (HostState& one : hosts) {
      note_watched(one);
      one.host->mounts.tick();
    }
    observe();
    if (judge.first()) return;
  }
}

void Cluster::network_changed(bool is_abrupt) {
  for (HostState& one : hosts) one.host->driver.network_changed(is_abrupt);
}

void Cluster::start_daemon(std::size_t index) {
  HostState& state = hosts[index];
  const auto config = config_of(index);
  if (!config || state.daemon) return;
  auto ended_there = [this, index](const Request& request) { ended(index, request); };
  state.daemon = std::make_unique<Daemon>(*state.host, *config, std::move(ended_there));
}

void Cluster::kill_daemon(std::size_t index) {
  HostState& state = hosts[index];
  if (!state.daemon) return;
  note_unfinished_takes(index);
  state.end_daemon();
  state.host->workers.lose_daemon(random);
}

void Cluster::reboot(std::size_t index) {
  HostState& state = hosts[index];
  note_unfinished_takes(index);
  state.end_daemon();
  state.host->workers.reboot();
  std::erase_if(state.host->state.records,
                [](const auto& one) { return one.first.second == volumes::Record::Held; });
  state.host->driver.reboot();
  state.host->mounts.reboot();
}

void Cluster::ask(std::size_t index, Ask asked, const std::string& volume) {
  HostState& state = hosts[index];
  if (!state.daemon || !state.daemon->volumes().find(volume)) return;
  const auto settings = std::ranges::find(state.volumes, volume, &VolumeSettings::name);
  const bool decides = asked == Ask::Up || asked == Ask::Down || asked == Ask::Take;
  if (decides) {
    before_[index][volume] = state.wish(volume);
    state.wishes[volume] = Wish::Unknown;
    // From now on an operator wants the volume to deal with them.
    for (MountEntry& one : state.host->mounts.entries()) {
      if (one.shown.target.native() == settings->mount) one.while_down = false;
    }
    for (Connection& one : state.host->driver.connections()) {
      if (one.shown.subsystem == settings->subsystem) one.while_down = false;
    }
  }
  if (asked == Ask::Take) note_take(index, *settings);
  if (asked == Ask::Publish || asked == Ask::PublishThenWrite) state.written.erase(volume);
  state.daemon->ask(asked, volume);
}

// From now on an operator accepts that the other hosts' unwritten data is lost.
void Cluster::note_take(std::size_t index, const VolumeSettings& settings) {
  const Disk& disk = disk_of(settings);
  const bool is_reserved = disk.reservations.offers && settings.fence != "mmp";
  for (std::size_t other = 0; other < kHosts; ++other) {
    if (other == index) continue;
    for (const SuperPtr& super : hosts[other].host->mounts.supers()) {
      // Its kernel may take another disk of the same identity for this one until its link is back.
      if (super->head->disk != &disk && super->uuid != disk.fs.uuid) continue;
      super->was_taken = true;
      super->is_exempt = super->is_exempt || !is_reserved;
    }
  }
}

// Only a daemon notices that its volume was taken over; and the reservation stops its kernel only until the
// other host gives it back. An operator takes over from a host that is gone for good.
void Cluster::note_watched(HostState& state) {
  NvmeDriver& driver = state.host->driver;
  for (const SuperPtr& super : state.host->mounts.supers()) {
    if (!super->was_taken) continue;
    const bool is_good = driver.io(*super->head) == Io::Good;
    const bool is_fact =
        !driver.may_write(*super->head) || super->head->disk->fs.writer != super->base_writer;
    if (!state.daemon || !is_good || !is_fact) {
      super->seen_since.reset();
    } else if (!super->seen_since) {
      super->seen_since = time.steady();
    }
    const bool is_new = !state.daemon || time.steady() - state.daemon->started() < kStarts;
    const bool was_seen = super->seen_since && time.steady() - *super->seen_since >= kSees;
    super->was_seen = super->was_seen || was_seen;
    super->is_unwatched = is_new && !super->was_seen;
  }
}

// The daemon ends: the target may have carried them out.
void Cluster::note_unfinished_takes(std::size_t index) {
  const HostState& state = hosts[index];
  if (!state.daemon) return;
  for (const RequestPtr& one : state.daemon->requests()) {
    if (one->ask != Ask::Take || one->result) continue;
    note_take(index, *std::ranges::find(state.volumes, one->volume, &VolumeSettings::name));
  }
}

// A host's daemon mounts the disk for writing: no other host may have it so, not even a frozen one.
void Cluster::check_alone(std::size_t index, const Super& opened) {
  const Disk& disk = *opened.head->disk;
  const auto& daemon = hosts[index].daemon;
  const bool is_asked = daemon && std::ranges::any_of(daemon->requests(), [](const RequestPtr& one) {
                          return one->ask == Ask::Take && !one->result;
                        });
  for (std::size_t other = 0; other < kHosts; ++other) {
    if (other == index || disk.is_unfenced || is_asked) continue;
    const MountTree& mounts = hosts[other].host->mounts;
    for (const SuperPtr& super : mounts.supers()) {
      const bool writes = super->is_writer() && super->head->disk == &disk && super->uuid == disk.fs.uuid;
      // A person's mount has ended what the other host could write, whoever has written since: that no fence
      // stops.
      const bool is_over = disk.fs.by_hand_writes != super->base_by_hand;
      // So has the write of a host that this one was taken over from, and that nothing could stop: the disk
      // does not show any more who has it open.
      const bool is_overwritten = disk.fs.is_writer_late && disk.fs.writer != super->base_writer;
      if (!writes || is_over || is_overwritten || super->by_hand || super->was_taken ||
          !mounts.is_mounted(*super))
        continue;
      judge.broken("mounted-over-a-writer", hosts[index].host->name + " mounts " + disk.name +
                                                " for writing, which " + hosts[other].host->name +
                                                " has mounted for writing, and no operator asked for that");
    }
  }
}

void Cluster::ended(std::size_t index, const Request& request) {
  on_end(index, request);
  HostState& state = hosts[index];
  if (request.volume.empty()) return;
  const auto settings = std::ranges::find(state.volumes, request.volume, &VolumeSettings::name);
  if (request.ask == Ask::Take) {
    // Another host may have mounted it since the request began.
    const bool holds = disk_of(*settings).holder() == state.host->driver.identity().id;
    // Without an answer, the target may still carry it out.
    const bool is_late = !*request.result && request.result->error().kind == Errc::TimedOut;
    if (*request.result || holds || is_late) note_take(index, *settings);
  }
  // A volume that the configuration has read-only by then is not asked to be written.
  const bool writes = (request.ask == Ask::Up || request.ask == Ask::Take) && settings->is_exclusive;
  if (writes && *request.result && !request.has_overlapped) state.written.insert(request.volume);
  if (request.has_overlapped) {
    if (request.ask != Ask::Publish && request.ask != Ask::PublishThenWrite)
      state.wishes[request.volume] = Wish::Unknown;
  } else if (request.ask == Ask::Up || request.ask == Ask::Take) {
    if (*request.result) state.wishes[request.volume] = Wish::Up;
  } else if (request.ask == Ask::Down) {
    state.wishes[request.volume] = *request.result ? Wish::Down : before_[index][request.volume];
  }
}

void Cluster::reload(std::size_t index) {
  HostState& state = hosts[index];
  note_fences();
  const auto config = config_of(index);
  if (state.daemon && config && !state.daemon->is_reloading()) state.daemon->reload(*config);
}

}  // namespace spark::histories
