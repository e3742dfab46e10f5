// What the kernel writes to the disks of its mounts, and how unwritten data is lost.
#include <algorithm>
#include <cerrno>

#include "tests/histories/volumes/world/mount_tree.hpp"

namespace spark::histories {
namespace {

constexpr Duration kWriteback{30'000};
constexpr Duration kNoticesExchange{40'000};  // of the disk: no probe can notice it at once

}  // namespace

Wrote MountTree::write(Super& super, Actor by, const std::function<void(FileSystem&)>& change) {
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
  const bool is_noticed = scene_.time.steady() - super.head->exchanged > kNoticesExchange;
  if (by == Actor::Daemon && is_other_file_system && is_noticed)
    scene_.judge.broken("other-file-system-overwritten", node_name_ + " writes file system " + super.uuid +
                                                             " over " + fs.uuid + " on " +
                                                             super.head->disk->name);
  if (is_other_file_system) return Wrote::Gone;
  if (is_outdated && fs.has_mmp) {
    shut_down(super, Actor::Fault, "multi-mount protection sees another host");
    return Wrote::Refused;
  }
  const bool is_own_fault = !super.by_hand && !super.is_exempt && !fs.is_writer_by_hand;
  if (is_outdated && is_own_fault && !super.head->disk->is_unfenced)
    scene_.judge.broken("outdated-mount-writes",
                        node_name_ + " writes to " + super.head->disk->name +
                            " from a mount that is older than another host's writes");
  change(fs);
  fs.writer = super.base_writer = super.id;
  fs.is_writer_by_hand = super.by_hand;
  ++super.head->completed;
  return Wrote::Done;
}

Wrote MountTree::flush(Super& super, Actor by) {
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

Wrote MountTree::close(Super& super, Actor by) {
  if (super.is_alive() && !super.read_only) {
    if (const Wrote flushed = flush(super, by); flushed == Wrote::Blocked) return flushed;
    const Wrote closed = write(super, by, [](FileSystem& fs) {
      fs.is_open = fs.mmp_open = false;
      ++fs.stamp;
    });
    if (closed == Wrote::Blocked) return closed;
  }
  std::erase_if(closing_, [&](const SuperPtr& one) { return one.get() == &super; });
  return Wrote::Done;
}

int MountTree::remount(MountEntry& entry, bool read_only) {
  Super& super = *entry.super;
  if (!super.is_alive()) return EIO;
  if (read_only) {
    for (const MountEntry& one : entries_) {
      const bool writes = std::ranges::any_of(one.files, &OpenFile::is_for_writing);
      if (one.super == entry.super && writes) return EBUSY;
    }
    const Wrote flushed = flush(super, Actor::Daemon);
    const Wrote closed = flushed != Wrote::Done ? flushed : write(super, Actor::Daemon, [](FileSystem& fs) {
      fs.is_open = fs.mmp_open = false;
      ++fs.stamp;
    });
    if (closed != Wrote::Done) return EIO;
  } else {
    on_open(super);
    const bool was_read_only = std::exchange(super.read_only, false);
    const Wrote opened = write(super, Actor::Daemon, [&](FileSystem& fs) {
      fs.is_open = fs.type == "ext4";
      fs.mmp_open = fs.has_mmp;
      fs.mmp_sequence = super.mmp_sequence;
      if (fs.has_mmp) fs.mmp_node = node_name_;
      if (fs.type == "ext4") ++fs.stamp;
    });
    if (opened != Wrote::Done) {
      super.read_only = was_read_only;
      return EIO;
    }
  }
  super.read_only = read_only;
  for (MountEntry& one : entries_) {
    if (one.super != entry.super) continue;
    one.shown.options.replace(0, 2, read_only ? "ro" : "rw");
  }
  changed();
  return 0;
}

void MountTree::shut_down(Super& super, Actor by, const std::string& why) {
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
  changed();
}

void MountTree::device_gone(const HeadPtr& head, Actor by) {
  for (const SuperPtr& super : supers()) {
    if (super->head != head || super->is_dead) continue;
    if (by == Actor::Daemon && is_mounted(*super) && super->is_alive() && !has_lost_fence(*super))
      scene_.judge.broken("disconnected-under-a-mount",
                          node_name_ + ": " + head->path() + " was disconnected while it was mounted");
    super->is_dead = true;
    scene_.tell("  " + node_name_ + ": " + head->path() + " is gone under its mount" +
                (super->dirty.empty() ? "" : "; unwritten data is lost"));
    lose_dirty(*super, by, "its device is gone");
  }
  changed();
}

void MountTree::lose_dirty(Super& super, Actor by, const std::string& why) {
  if (super.dirty.empty()) return;
  if (by == Actor::Daemon && !has_lost_fence(super))
    scene_.judge.broken(
        "data-lost", node_name_ + ": data that programs wrote to " + super.head->path() + " is lost: " + why);
  super.dirty.clear();
  super.flush = Duration(0);
}

bool MountTree::has_lost_fence(const Super& super) const {
  const Disk& disk = *super.head->disk;
  const std::string holder = super.head->disk->holder();
  const bool is_taken = !holder.empty() && holder != driver_.identity().id;
  const bool was_released =
      disk.reservations.offers && holder.empty() && disk.reservations.state.generation > 0;
  const bool is_other_node = disk.fs.has_mmp && disk.fs.mmp_open && disk.fs.mmp_node != node_name_;
  return disk.fs.uuid != super.uuid || is_other_node ||
         (!super.read_only && (is_taken || was_released || disk.fs.writer != super.base_writer));
}

// The kernel compares the block before it writes it.
void MountTree::keep_mmp(Super& super) {
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

void MountTree::close_unused() {
  std::vector<SuperPtr> unused;
  for (const MountEntry& one : detached_) {
    if (one.files.empty() && one.super) unused.push_back(one.super);
  }
  std::erase_if(detached_, [](const MountEntry& one) { return one.files.empty(); });
  for (const SuperPtr& super : unused) {
    if (!is_mounted(*super)) closing_.push_back(super);
  }
}

void MountTree::tick() {
  const SteadyTime now = scene_.time.steady();
  for (const SuperPtr& super : supers()) {
    keep_mmp(*super);
    const bool is_due = !super->dirty.empty() && now - super->written >= kWriteback + super->flush;
    if (is_due && driver_.io(*super->head) == Io::Good) (void)flush(*super, Actor::Fault);
  }
  close_unused();
  const auto closing = closing_;
  for (const SuperPtr& super : closing) {
    if (super->flush == Duration(0) || now - super->written >= super->flush)
      (void)close(*super, Actor::Fault);
  }
}

}  // namespace spark::histories
