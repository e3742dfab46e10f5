// The mounts of one simulated host, and the files that programs have open there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "tests/histories/volumes/world/folders.hpp"
#include "tests/histories/volumes/world/open_file_systems.hpp"

namespace spark::histories {

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
  Folders folders;  // of a tmpfs
};

// The mount table, and how paths lead through it. What happens to the file systems behind it is up to
// OpenFileSystems.
class MountTree {
 public:
  // `root`: the folders of the root file system; they outlive a reboot.
  MountTree(OpenFileSystems& file_systems, Folders& root);

  const Result<std::vector<mounts::Mount>>& table();
  std::vector<MountEntry>& entries() { return entries_; }
  // The mount that the path leads to.
  MountEntry& resolve(const std::string& path);
  // Topmost in the table, whether or not the path leads to it; null: none.
  MountEntry* top_at(const std::string& path);
  bool has_folder(const std::string& path);
  // Of the mount that the path leads to.
  Folders& folders_at(const std::string& path);
  bool has_detached_files() const { return !detached_.empty(); }
  // By programs, through a mount that was lazily unmounted: the table does not show it.
  bool is_used_detached(const Super& super) const;

  // These return an error number; 0: done.
  int mount(const HeadPtr& head, const std::string& target, bool read_only, bool no_recovery,
            const std::string& options, bool by_hand);
  int bind(const std::string& from, const std::string& target);
  int mount_tmpfs(const std::string& target);
  // Takes it from the table. The file system of the last mount is closing then: see OpenFileSystems::close().
  int unmount(const std::string& target, SuperPtr& closing);
  int detach(const std::string& target);
  int remount(MountEntry& entry, bool read_only);

  bool close_files();  // of all programs; whether there were any
  void remove_if(const std::function<bool(const MountEntry&)>& is_wanted);
  void device_gone(const HeadPtr& head, Actor by);
  // An unmount that waits in the kernel goes on as soon as its device answers.
  void link_changed() { file_systems_.close_due(); }
  // What the kernel does on its own: write back, multi-mount protection, last closes.
  void tick();
  void reboot();

  // All file systems in memory, also those without a mount.
  std::vector<SuperPtr> supers() const;
  bool is_mounted(const Super& super) const;

 private:
  int free_id() const;
  MountEntry& add(const std::string& target, mounts::Mount shown);
  void close_unused();

  OpenFileSystems& file_systems_;
  Folders& root_;
  std::vector<MountEntry> entries_, detached_;
  Result<std::vector<mounts::Mount>> table_;
  bool is_table_old_ = true;
  std::uint64_t shown_shut_downs_ = 0;  // in table_
};

}  // namespace spark::histories
