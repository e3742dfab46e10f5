// The mounts of one simulated host, the file systems behind them, and what programs do with their files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "daemon/mounts/table.hpp"
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
  int base_writer = 0;     // FileSystem::writer when it last knew its content
  std::set<int> dirty;     // records that programs wrote, and that are not on the disk yet
  Duration flush{0};       // what writing them takes
  SteadyTime written{};    // since when there are any
  std::optional<mounts::Published> published;
  std::string damage;
  std::uint32_t mmp_sequence = 0;

  bool is_alive() const { return !shut_down && !is_dead; }
  bool is_writer() const { return is_alive() && !read_only; }
};
using SuperPtr = std::shared_ptr<Super>;

struct OpenFile {
  int pid = 0;
  bool is_for_writing = false;
};

struct MountEntry {
  mounts::Mount shown;
  std::string root = "/";  // the mounted folder within the file system
  SuperPtr super;          // none: the root file system, a tmpfs
  bool by_hand = false;
  bool while_down = false;  // made by hand while an operator wanted the volume down
  std::vector<OpenFile> files;
  std::set<std::string> folders;  // of a tmpfs
};

// A folder of the root file system.
struct Folder {
  bool is_immutable = false;
  std::set<std::string> files;
};

enum class Wrote { Done, Blocked, Refused, Gone };

class MountTree {
 public:
  MountTree(Scene scene, NvmeDriver& driver, std::string node_name, int* last_super);

  const Result<std::vector<mounts::Mount>>& table();
  std::vector<MountEntry>& entries() { return entries_; }
  // The mount that the path leads to.
  MountEntry& resolve(const std::string& path);
  // Topmost in the table, whether or not the path leads to it; null: none.
  MountEntry* top_at(const std::string& path);
  bool has_folder(const std::string& path);
  void make_folder(const std::string& path);
  bool has_files(const std::string& path);  // what a mount there would hide
  Folder& folder(const std::string& path) { return folders_[path]; }
  bool has_detached_files() const { return !detached_.empty(); }
  SteadyTime changed_at() const { return changed_at_; }
  void changed();

  // Called before the daemon's mount, or its mount again, for writing.
  std::function<void(const Super&)> on_open = [](const Super&) {};

  // These return an error number; 0: done.
  int mount(const HeadPtr& head, const std::string& target, bool read_only, bool no_recovery,
            const std::string& options, bool by_hand);
  int bind(const std::string& from, const std::string& target);
  int mount_tmpfs(const std::string& target);
  // Takes it from the table. The file system of the last mount is closing then: see close().
  int unmount(const std::string& target, SuperPtr& closing);
  int detach(const std::string& target);
  int remount(MountEntry& entry, bool read_only);

  // Writes what is unwritten, and closes the file system on its disk. Blocked: again later.
  Wrote close(Super& super, Actor by);
  bool close_files();  // of all programs; whether there were any
  void remove_if(const std::function<bool(const MountEntry&)>& is_wanted);
  bool is_mounted(const Super& super) const;
  Wrote flush(Super& super, Actor by);
  // Without flushing.
  void shut_down(Super& super, Actor by, const std::string& why);
  void device_gone(const HeadPtr& head, Actor by);
  // A change of the file system on its disk.
  Wrote write(Super& super, Actor by, const std::function<void(FileSystem&)>& change);
  // What the kernel does by itself: write back, multi-mount protection, last closes.
  void tick();
  void reboot();
  // Whether the file system's loss of its disk to another writer is a fact.
  bool has_lost_fence(const Super& super) const;

  NvmeDriver& driver() { return driver_; }
  std::vector<SuperPtr> supers() const;

 private:
  MountEntry& add(const std::string& target, mounts::Mount shown);
  void lose_dirty(Super& super, Actor by, const std::string& why);
  void keep_mmp(Super& super);
  void close_unused();

  Scene scene_;
  NvmeDriver& driver_;
  std::string node_name_;
  int* last_super_;
  std::vector<MountEntry> entries_, detached_;
  std::vector<SuperPtr> closing_;  // without a mount
  std::map<std::string, Folder> folders_;
  Result<std::vector<mounts::Mount>> table_;
  bool is_table_old_ = true;
  SteadyTime changed_at_{};
  int next_id_ = 21;
};

}  // namespace spark::histories
