#include "tests/histories/volumes/world/open_file_systems.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace spark::histories {
namespace {

constexpr Duration kWriteback{30'000};
constexpr Duration kNoticesExchange{40'000};  // of the disk: no probe can notice it at once

// The mount knows from now on what is on the disk.
void note_writer(FileSystem& fs, Super& super) {
  fs.writer = super.base_writer = super.id;
  fs.is_writer_by_hand = super.by_hand;
  if (super.by_hand) ++fs.by_hand_writes;
  super.base_by_hand = fs.by_hand_writes;
}

}  // namespace

OpenFileSystems::OpenFileSystems(Scene scene, NvmeDriver& driver, std::string node_name, int* last_super)
    : scene_(scene), driver_(driver), node_name_(std::move(node_name)), last_super_(last_super) {}

int OpenFileSystems::check_readable(Head& head) {
  if (head.is_gone) return ENXIO;
  if (driver_.io(head) != Io::Good) return EIO;
  return head.disk->fs.type.empty() ? EINVAL : 0;
}

int OpenFileSystems::open(Super& super) {
  FileSystem& fs = super.head->disk->fs;
  const bool replays = fs.is_open && !super.no_recovery;
  if ((replays || !super.read_only) && super.head->read_only) return EROFS;
  if ((replays || !super.read_only) && !driver_.may_write(*super.head)) return EBADE;
  super.id = ++*last_super_;
  super.opened = scene_.time.steady();
  super.type = fs.type;
  super.uuid = fs.uuid;
  super.published = fs.published;
  super.damage = fs.damage;
  super.mmp_sequence = scene_.random.below(0x7FFFFFFF);
  super.base_writer = fs.writer;
  super.base_by_hand = fs.by_hand_writes;
  if (!super.read_only && !super.by_hand) on_open(super);
  if (super.read_only && !replays) return 0;
  fs.is_writer_late = false;
  note_writer(fs, super);
  if (super.read_only) {
    fs.is_open = false;  // the journal was replayed
    ++fs.stamp;
    return 0;
  }
  fs.is_open = fs.is_open || fs.type == "ext4";
  if (fs.type == "ext4") ++fs.stamp;
  ++fs.mounts;
  fs.mmp_open = fs.has_mmp;
  fs.is_mmp_claim = false;
  fs.mmp_sequence = super.mmp_sequence;
  if (fs.has_mmp) fs.mmp_node = node_name_;
  return 0;
}

int OpenFileSystems::reopen(Super& super, bool read_only) {
  if (read_only) {
    const Wrote flushed = flush(super, Actor::Daemon);
    const Wrote closed = flushed != Wrote::Done ? flushed : write(super, Actor::Daemon, [](FileSystem& fs) {
      fs.is_open = fs.mmp_open = false;
      ++fs.stamp;
    });
    if (closed != Wrote::Done) return EIO;
  } else {
    if (!super.by_hand && driver_.may_write(*super.head)) on_open(super);
    const bool was_read_only = std::exchange(super.read_only, false);
    const Wrote opened = write(super, Actor::Daemon, [&](FileSystem& fs) {
      fs.is_open = fs.type == "ext4";
      fs.mmp_open = fs.has_mmp;
      fs.is_mmp_claim = false;
      fs.mmp_sequence = super.mmp_sequence;
      if (fs.has_mmp) fs.mmp_node = node_name_;
      if (fs.type == "ext4") ++fs.stamp;
      ++fs.mounts;
    });
    if (opened != Wrote::Done) {
      super.read_only = was_read_only;
      return EIO;
    }
  }
  super.read_only = read_only;
  return 0;
}

Wrote OpenFileSystems::write(Super& super, Actor by, const std::function<void(FileSystem&)>& change) {
  if (!super.is_alive() || super.head->is_gone) return Wrote::Gone;
  if (driver_.io(*super.head) != Io::Good) return Wrote::Blocked;
  FileSystem& fs = super.head->disk->fs;
  if (super.head->read_only) return Wrote::Refused;
  if (!driver_.may_write(*super.head)) {
    shut_down(super, Actor::Fault, "the target refuses its writes: another host holds the reservation");
    return Wrote::Refused;
  }
  const bool is_other_file_system = fs.uuid != super.uuid;
  const bool is_outdated = !is_other_file_system && fs.writer != super.base_writer;
  const SteadyTime exchanged = std::max(super.head->exchanged, fs.made);
  const bool is_noticed = scene_.time.steady() - exchanged > kNoticesExchange;
  if (by == Actor::Daemon && is_other_file_system && is_noticed && !super.is_in_call)
    scene_.judge.broken(
        super.is_late ? "other-file-system-overwritten-by-a-late-close" : "other-file-system-overwritten",
        node_name_ + " writes file system " + super.uuid + " over " + fs.uuid + " on " +
            super.head->disk->name);
  if (is_other_file_system) return Wrote::Gone;
  if (is_outdated && fs.has_mmp) {
    shut_down(super, Actor::Fault, "multi-mount protection sees another host");
    return Wrote::Refused;
  }
  const bool is_kernels = super.is_unwatched && by != Actor::Daemon;
  const bool waited = super.is_in_call || super.is_sending;
  const bool is_by_others = fs.is_writer_by_hand || fs.is_writer_late;
  const bool is_own_fault = !super.by_hand && !super.is_exempt && !is_by_others && !is_kernels;
  if (is_outdated && is_own_fault && !super.head->disk->is_unfenced && !waited)
    scene_.judge.broken("outdated-mount-writes",
                        node_name_ + " writes to " + super.head->disk->name +
                            " from a mount that is older than another host's writes");
  super.was_overtaken = super.was_overtaken || is_outdated;
  change(fs);
  const bool is_same_writer = fs.writer == super.id;
  fs.is_writer_late = (is_outdated && (waited || is_kernels)) || (is_same_writer && fs.is_writer_late);
  note_writer(fs, super);
  ++super.head->completed;
  return Wrote::Done;
}

Wrote OpenFileSystems::flush(Super& super, Actor by) {
  if (super.dirty.empty()) return Wrote::Done;
  const auto flushed = write(super, by, [&](FileSystem& fs) {
    fs.records.insert(super.dirty.begin(), super.dirty.end());
    fs.is_open = true;
  });
  if (flushed != Wrote::Done) return flushed;
  super.dirty.clear();
  super.flush = Duration(0);
  return Wrote::Done;
}

Wrote OpenFileSystems::close(Super& super, Actor by) {
  const auto is_it = [&](const SuperPtr& one) { return one.get() == &super; };
  if (std::ranges::none_of(closing_, is_it)) return Wrote::Done;  // the kernel was faster
  if (super.is_alive() && !super.read_only) {
    if (const Wrote flushed = flush(super, by); flushed == Wrote::Blocked) return flushed;
    const Wrote closed = write(super, by, [](FileSystem& fs) {
      fs.is_open = fs.mmp_open = false;
      ++fs.stamp;
    });
    if (closed == Wrote::Blocked) return closed;
  }
  if (super.is_late && super.writes_superblock()) judge_superblock(super);
  std::erase_if(closing_, is_it);
  return Wrote::Done;
}

// Its unmount has waited for the device, with a superblock that is older than another host's.
void OpenFileSystems::judge_superblock(const Super& super) {
  const FileSystem& fs = super.head->disk->fs;
  const bool is_newer = fs.uuid != super.uuid || fs.writer != super.base_writer;
  if (is_newer && driver_.may_write(*super.head) && !super.by_hand && !super.is_in_call)
    scene_.judge.broken("superblock-overwritten", node_name_ + " unmounts " + super.head->path() +
                                                      ", and writes an old superblock to " +
                                                      super.head->disk->name);
}

void OpenFileSystems::shut_down(Super& super, Actor by, const std::string& why) {
  if (!super.is_alive()) return;
  if (by == Actor::Daemon && !has_lost_fence(super)) {
    const std::string what = node_name_ + ": the mount of " + super.head->disk->name +
                             " was shut down, and nothing had happened to its fence: " + why;
    scene_.judge.broken(super.by_hand     ? "by-hand-mount-shut-down"
                        : super.read_only ? "reader-shut-down"
                                          : "writer-shut-down",
                        what);
  }
  super.shut_down = true;
  scene_.tell("  " + node_name_ + ": " + super.head->path() + " is shut down: " + why +
              (super.dirty.empty() ? "" : "; unwritten data is lost"));
  lose_dirty(super, Actor::Fault, why);
  ++shut_downs_;
}

void OpenFileSystems::device_gone(Super& super, Actor by, bool is_mounted) {
  if (by == Actor::Daemon && is_mounted && super.is_alive() && !has_lost_fence(super))
    scene_.judge.broken("disconnected-under-a-mount",
                        node_name_ + ": " + super.head->path() + " was disconnected while it was mounted");
  super.is_dead = true;
  scene_.tell("  " + node_name_ + ": " + super.head->path() + " is gone under its mount" +
              (super.dirty.empty() ? "" : "; unwritten data is lost"));
  lose_dirty(super, by, "its device is gone");
}

void OpenFileSystems::lose_dirty(Super& super, Actor by, const std::string& why) {
  if (super.dirty.empty()) return;
  if (by == Actor::Daemon && !has_lost_fence(super))
    scene_.judge.broken(
        "data-lost", node_name_ + ": data that programs wrote to " + super.head->path() + " is lost: " + why);
  super.dirty.clear();
  super.flush = Duration(0);
}

bool OpenFileSystems::has_lost_fence(const Super& super) const {
  const Disk& disk = *super.head->disk;
  const std::string holder = super.head->disk->holder();
  const bool is_taken = !holder.empty() && holder != driver_.identity().id;
  const bool was_released =
      disk.reservations.offers && holder.empty() && disk.reservations.state.generation > 0;
  // Another disk was there under its mount, if only for a moment.
  const bool was_exchanged = super.head->exchanged >= super.opened && super.head->exchanged != SteadyTime{} &&
                             scene_.time.steady() - super.head->exchanged <= kNoticesExchange;
  const bool is_other_node = disk.fs.has_mmp && disk.fs.mmp_open && disk.fs.mmp_node != node_name_;
  // An operator may have had it taken over, even if the target has forgotten that since.
  return disk.fs.uuid != super.uuid || was_exchanged || is_other_node || super.was_taken ||
         super.was_overtaken ||
         (!super.read_only && (is_taken || was_released || disk.fs.writer != super.base_writer));
}

// The kernel compares the block before it writes it.
void OpenFileSystems::keep_mmp(Super& super) {
  if (!super.is_writer() || super.head->is_gone || !super.head->disk->fs.has_mmp) return;
  if (driver_.io(*super.head) != Io::Good) return;
  const FileSystem& fs = super.head->disk->fs;
  if (fs.uuid != super.uuid) return;
  if (fs.mmp_sequence != super.mmp_sequence) {
    shut_down(super, Actor::Fault, "multi-mount protection sees another host");
    return;
  }
  const std::uint32_t next = (super.mmp_sequence + 1) % 0x7FFFFFFF;
  const auto kept = write(super, Actor::Fault, [&](FileSystem& written) { written.mmp_sequence = next; });
  if (kept == Wrote::Done) super.mmp_sequence = next;
}

void OpenFileSystems::keep(Super& super) {
  keep_mmp(super);
  const bool is_due =
      !super.dirty.empty() && scene_.time.steady() - super.written >= kWriteback + super.flush;
  const Io io = driver_.io(*super.head);
  if (is_due && io == Io::Good) (void)flush(super, Actor::Fault);
  super.is_sending = is_due && io == Io::Blocked;
}

void OpenFileSystems::close_due() {
  const SteadyTime now = scene_.time.steady();
  const auto closing = closing_;
  for (const SuperPtr& super : closing) {
    if (super->flush == Duration(0) || now - super->written >= super->flush)
      (void)close(*super, Actor::Fault);
  }
}

}  // namespace spark::histories
