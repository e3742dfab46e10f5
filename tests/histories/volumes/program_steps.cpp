#include <algorithm>
#include <array>
#include <cerrno>

#include "tests/histories/volumes/steps.hpp"

namespace spark::histories {
namespace {

struct Choice {
  HostState& state;
  VolumeSettings& volume;
  MountTree& mounts;
  std::string who;
};

Choice pick(Cluster& cluster, Dice& dice) {
  HostState& state = cluster.hosts[dice.pick(kHosts)];
  VolumeSettings& volume = state.volumes[dice.pick(state.volumes.size())];
  return {state, volume, state.host->mounts, state.host->name + ": "};
}

bool is_wanted_down(const HostState& state, const VolumeSettings& volume) {
  return state.wish(volume.name) == Wish::Down;
}

void connect_by_hand(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const Target& target = cluster.target_of(here.volume);
  NvmeDriver& driver = here.state.host->driver;
  const auto made = driver.connect(here.volume.subsystem, {target.address, 4420}, Actor::Program);
  if (!made) return;
  driver.find(*made)->while_down = std::ranges::all_of(here.state.volumes, [&](const VolumeSettings& volume) {
    return volume.subsystem != here.volume.subsystem || is_wanted_down(here.state, volume);
  });
  cluster.tell(here.who + "nvme connect -n " + here.volume.subsystem + " makes " + *made);
}

HeadPtr device_of(const Choice& here) {
  for (const Connection& one : here.state.host->driver.connections()) {
    for (const HeadPtr& head : one.heads) {
      if (one.shown.subsystem == here.volume.subsystem && head->nsid == here.volume.nsid) return head;
    }
  }
  return nullptr;
}

// As the kernel does, at the end of its wait: another host's updates were seen.
bool is_protected(Cluster& cluster, const Choice& here, const HeadPtr& head) {
  const FileSystem& fs = head->disk->fs;
  if (!fs.has_mmp || !fs.mmp_open) return false;
  for (HostState& other : cluster.hosts) {
    for (const SuperPtr& super : other.host->mounts.supers()) {
      const bool keeps = super->is_writer() && super->head->disk == head->disk &&
                         other.host->driver.io(*super->head) == Io::Good;
      if (keeps && &other != &here.state) return true;
    }
  }
  return false;
}

void mount_by_hand(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const HeadPtr head = device_of(here);
  if (!head) return;
  const bool is_read_only = dice.pick(3) == 0;
  const std::string target = dice.pick(4) == 0 ? "/mnt/other" : here.volume.mount;
  if (here.mounts.top_at(target) != nullptr && dice.pick(4) != 0) return;
  if (!is_read_only && is_protected(cluster, here, head)) return;
  const bool was_read_only = head->read_only;
  if (!is_read_only) head->read_only = false;  // blockdev --setrw
  const int error =
      here.mounts.mount(head, target, is_read_only, is_read_only && dice.pick(2) == 0, "relatime", true);
  if (error != 0) {
    head->read_only = was_read_only;
    return;
  }
  here.mounts.entries().back().while_down = is_wanted_down(here.state, here.volume);
  cluster.tell(here.who + "mount " + head->path() + " " + target + (is_read_only ? " -o ro" : ""));
}

void unmount_by_hand(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const std::string target = dice.pick(3) == 0 ? "/mnt/other" : here.volume.mount;
  SuperPtr closing;
  const int error = here.mounts.unmount(target, closing);
  const int id = here.mounts.resolve(target).shown.id;
  const bool has_others_on_top = std::ranges::any_of(
      here.mounts.entries(), [&](const MountEntry& one) { return one.shown.parent_id == id; });
  const bool is_lazy =
      error == EBUSY && !has_others_on_top && dice.pick(2) == 0 && here.mounts.detach(target) == 0;
  if (error != 0 && !is_lazy) return;
  cluster.tell(here.who + (is_lazy ? "umount -l " : "umount ") + target);
  here.state.cleared = cluster.time.steady();
  if (closing)
    closing->is_in_call = here.state.host->file_systems.close(*closing, Actor::Program) == Wrote::Blocked;
}

void bind_by_hand(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const std::string from = dice.pick(2) == 0 ? here.volume.mount : "/mnt/other";
  const std::string to = dice.pick(3) == 0 ? "/mnt/other" : here.volume.mount;
  if (!here.mounts.resolve(from).super || here.mounts.bind(from, to) != 0) return;
  here.mounts.entries().back().while_down = is_wanted_down(here.state, here.volume);
  cluster.tell(here.who + "mount --bind " + from + "/folder " + to);
}

void cover(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const std::string parent = here.volume.mount.substr(0, here.volume.mount.rfind('/'));
  const std::string target = dice.pick(4) == 0 ? here.volume.mount : parent;
  if (here.mounts.mount_tmpfs(target) != 0) return;
  if (target == parent && dice.pick(4) != 0)
    here.mounts.folders_at(here.volume.mount).make(here.volume.mount);
  cluster.tell(here.who + "mount -t tmpfs none " + target);
}

void uncover(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  const std::string parent = here.volume.mount.substr(0, here.volume.mount.rfind('/'));
  for (const std::string& target : {here.volume.mount, parent}) {
    SuperPtr closing;
    const MountEntry& reached = here.mounts.resolve(target);
    if (reached.shown.type != "tmpfs" || here.mounts.unmount(target, closing) != 0) continue;
    cluster.tell(here.who + "umount " + target);
    here.state.cleared = cluster.time.steady();
    return;
  }
}

// A person looks where it is mounted for writing, and at this host.
bool is_in_use(Cluster& cluster, const HostState* here, const Disk* disk) {
  return std::ranges::any_of(cluster.hosts, [&](HostState& state) {
    const auto supers = state.host->mounts.supers();
    return std::ranges::any_of(supers, [&](const SuperPtr& super) {
      return super->head->disk == disk && (&state == here || !super->read_only);
    });
  });
}

void make_file_system_on(Cluster& cluster, const Choice& here, Dice& dice) {
  const HeadPtr head = device_of(here);
  if (!head || head->read_only || is_in_use(cluster, &here.state, head->disk)) return;
  if (here.state.host->driver.io(*head) != Io::Good || !here.state.host->driver.may_write(*head)) return;
  FileSystem fresh;
  fresh.type = dice.pick(2) == 0 ? "ext4" : "xfs";
  fresh.uuid = cluster.next_uuid();
  fresh.made = cluster.time.steady();
  fresh.bytes = head->disk->bytes;
  fresh.stamp = head->disk->fs.stamp + 1000;
  fresh.has_mmp = fresh.type == "ext4" && dice.pick(2) == 0;
  head->disk->fs = std::move(fresh);
  cluster.tell(here.who + "mkfs on " + head->path() + " makes file system " + head->disk->fs.uuid);
}

void make_file_system(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  NvmeDriver& driver = here.state.host->driver;
  std::string own;  // the connection that the person makes for it
  if (!device_of(here)) {
    const nvmetcp::Portal portal{cluster.target_of(here.volume).address, 4420};
    own = driver.connect(here.volume.subsystem, portal, Actor::Program).value_or("");
  }
  make_file_system_on(cluster, here, dice);
  if (!own.empty()) driver.remove(own, Actor::Program);
}

// An older copy of the file system, from before it was grown.
void restore_older(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  Disk& disk = cluster.disk_of(here.volume);
  if (is_in_use(cluster, &here.state, &disk) || disk.fs.bytes < kGiB) return;
  disk.fs.bytes /= 2;
  disk.fs.stamp += 1000;
  disk.fs.writer = ++cluster.last_super;  // a host may have it mounted whose device shows another disk now
  disk.fs.is_writer_by_hand = true;
  ++disk.fs.by_hand_writes;
  cluster.tell("an older, smaller copy of file system " + disk.fs.uuid + " is restored on " + disk.name);
}

void open_file(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  MountEntry& reached = here.mounts.resolve(here.volume.mount);
  if (!reached.super || !reached.super->is_alive()) return;
  const bool is_for_writing = dice.pick(2) == 0 && !reached.super->read_only;
  const int pid = here.state.next_pid++;
  reached.files.push_back({pid, is_for_writing});
  cluster.tell(here.who + "process " + std::to_string(pid) + " opens a file in " + here.volume.mount +
               (is_for_writing ? " for writing" : ""));
}

void close_files(Cluster& cluster, Dice& dice) {
  const Choice here = pick(cluster, dice);
  here.state.cleared = cluster.time.steady();
  if (here.mounts.close_files()) cluster.tell(here.who + "all programs close their files");
}

void write_file(Cluster& cluster, Dice& dice) {
  static constexpr std::array kFlushes = {50, 50, 500, 500, 4'000, 90'000};
  const Choice here = pick(cluster, dice);
  MountEntry& reached = here.mounts.resolve(here.volume.mount);
  if (!reached.super || !reached.super->is_writer()) return;
  Super& super = *reached.super;
  const int record = ++cluster.last_record;
  if (super.dirty.empty()) super.written = cluster.time.steady();
  super.dirty.insert(record);
  const Duration flush(kFlushes[dice.pick(kFlushes.size())]);
  super.flush += flush;
  const bool is_flushed = dice.pick(2) == 0 && flush < Duration(1'000) &&
                          here.state.host->file_systems.flush(super, Actor::Program) == Wrote::Done;
  cluster.tell(here.who + "a program writes record " + std::to_string(record) + " below " +
               here.volume.mount + (is_flushed ? ", and flushes it" : ""));
}

constexpr std::array kProgramSteps = {
    VolumeAction{"connect-by-hand", 6, connect_by_hand},
    VolumeAction{"mount-by-hand", 7, mount_by_hand},
    VolumeAction{"umount-by-hand", 5, unmount_by_hand},
    VolumeAction{"bind", 2, bind_by_hand},
    VolumeAction{"cover", 2, cover},
    VolumeAction{"uncover", 3, uncover},
    VolumeAction{"mkfs", 5, make_file_system},
    VolumeAction{"restore-older", 2, restore_older},
    VolumeAction{"open", 5, open_file},
    VolumeAction{"close", 5, close_files},
    VolumeAction{"write", 12, write_file},
};

}  // namespace

std::span<const VolumeAction> program_steps() {
  return kProgramSteps;
}

}  // namespace spark::histories
