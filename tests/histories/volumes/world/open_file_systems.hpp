// The file systems that the kernel of one simulated host has in memory, mounted or not yet closed: what it
// writes to their disks, and how unwritten data is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/histories/volumes/world/nvme_driver.hpp"

namespace spark::histories {

// A file system in a host's memory.
struct Super {
  int id = 0;  // of all hosts
  HeadPtr head;
  std::string type, uuid;
  bool read_only = false, no_recovery = false;
  bool shut_down = false;  // by a call, or by the kernel after a refused write: every access fails
  bool is_dead = false;    // its device is gone
  bool by_hand = false;
  bool was_taken = false;  // an operator had its volume taken over by another host,
  bool is_exempt = false;  // and nothing but multi-mount protection stops its late writes
  // was_taken, and no daemon there has been able to see it: only as long as the other host holds the
  // reservation does anything stop this kernel.
  bool is_unwatched = false, was_seen = false;
  std::optional<SteadyTime> seen_since;  // a daemon there could see it
  bool is_late = false;                  // its unmount waits for the device
  // A call waits in the kernel for the device, and nothing calls it back: a person's unmount of a frozen
  // mount; a remount that its worker began right after a look; or an unmount that the daemon began after one,
  // while the kernel took the link for live.
  bool is_in_call = false;
  bool is_sending = false;     // its kernel has begun to write: it goes on as soon as its link is back
  bool was_overtaken = false;  // another mount wrote to its disk meanwhile
  SteadyTime opened{};
  int base_writer = 0;        // FileSystem::writer when it last knew its content
  unsigned base_by_hand = 0;  // the same of FileSystem::by_hand_writes
  std::set<int> dirty;        // records that programs wrote, and that are not on the disk yet
  Duration flush{0};          // what writing them takes
  SteadyTime written{};       // since when there are any
  std::optional<mounts::Published> published;
  std::string damage;
  std::uint32_t mmp_sequence = 0;

  bool is_alive() const { return !shut_down && !is_dead; }
  // On unmount, before Linux 6.15.
  bool writes_superblock() const { return shut_down && !is_dead && !read_only && type == "ext4"; }
  // A part of the time that writing takes: a flush ends early if it is shut down meanwhile.
  Duration take_flush() {
    const Duration part = std::min(flush, Duration(500));
    flush -= part;
    return part;
  }
  bool is_writer() const { return is_alive() && !read_only; }
};
using SuperPtr = std::shared_ptr<Super>;

enum class Wrote { Done, Blocked, Refused, Gone };

// Knows no mount points: MountTree says what is mounted, and hands over what no longer is.
class OpenFileSystems {
 public:
  OpenFileSystems(Scene scene, NvmeDriver& driver, std::string node_name, int* last_super);

  // Called before the daemon's mount, or its mount again, for writing.
  std::function<void(const Super&)> on_open = [](const Super&) {};

  // These return an error number; 0: done.
  int check_readable(Head& head);
  int open(Super& super);  // for its first mount, on its head and in its mode
  int reopen(Super& super, bool read_only);

  // A change of the file system on its disk.
  Wrote write(Super& super, Actor by, const std::function<void(FileSystem&)>& change);
  Wrote flush(Super& super, Actor by);
  // Without flushing.
  void shut_down(Super& super, Actor by, const std::string& why);
  void device_gone(Super& super, Actor by, bool is_mounted);
  // Whether the file system's loss of its disk to another writer is a fact.
  bool has_lost_fence(const Super& super) const;

  // What has no mount any more waits for its close.
  void unmounted(SuperPtr super) { closing_.push_back(std::move(super)); }
  const std::vector<SuperPtr>& closing() const { return closing_; }
  // Writes what is unwritten, and closes the file system on its disk. Blocked: again later.
  Wrote close(Super& super, Actor by);

  // What the kernel does on its own.
  void keep(Super& super);  // write back, multi-mount protection
  void close_due();
  void reboot() { closing_.clear(); }

  // How many were shut down so far: the mount table shows it.
  std::uint64_t shut_downs() const { return shut_downs_; }

 private:
  void judge_superblock(const Super& super);
  void lose_dirty(Super& super, Actor by, const std::string& why);
  void keep_mmp(Super& super);

  Scene scene_;
  NvmeDriver& driver_;
  std::string node_name_;
  int* last_super_;
  std::vector<SuperPtr> closing_;  // without a mount
  std::uint64_t shut_downs_ = 0;
};

}  // namespace spark::histories
