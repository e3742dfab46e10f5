#include "tests/histories/volumes/world/mount_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

namespace spark::histories {
namespace {

constexpr int kRootMount = 20;

mounts::Mount root_mount() {
  mounts::Mount root;
  root.source = "/dev/sda2";
  root.target = "/";
  root.type = "ext4";
  root.options = root.super_options = "rw";
  root.device_number = 8 * 256 + 2;
  root.id = kRootMount;
  root.parent_id = 1;
  return root;
}

}  // namespace

MountTree::MountTree(OpenFileSystems& file_systems, Folders& root)
    : file_systems_(file_systems), root_(root) {
  reboot();
}

void MountTree::reboot() {
  entries_.clear();
  detached_.clear();
  file_systems_.reboot();
  MountEntry root;
  root.shown = root_mount();
  entries_.push_back(std::move(root));
  is_table_old_ = true;
}

const Result<std::vector<mounts::Mount>>& MountTree::table() {
  const auto shut_downs = file_systems_.shut_downs();
  if (!is_table_old_ && shown_shut_downs_ == shut_downs) return table_;
  is_table_old_ = false;
  shown_shut_downs_ = shut_downs;
  table_->clear();
  for (MountEntry& one : entries_) {
    if (one.super) {
      std::string& shown = one.shown.super_options;
      shown = one.super->read_only ? "ro" : "rw";
      if (one.super->no_recovery) shown += ",norecovery";
      if (!one.super->is_alive() && one.super->type == "ext4") shown += ",shutdown";
    }
    table_->push_back(one.shown);
  }
  return table_;
}

// As the kernel walks: at each folder, the mounts on the mount that it is in, and the mounts on those.
MountEntry& MountTree::resolve(const std::string& path) {
  MountEntry* at = &entries_.front();
  std::size_t end = 0;
  while (end != std::string::npos && end < path.size()) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    for (bool is_covered = true; is_covered;) {
      const auto on_top = std::ranges::find_if(entries_, [&](const MountEntry& one) {
        return one.shown.parent_id == at->shown.id && one.shown.target.native() == folder;
      });
      is_covered = on_top != entries_.end();
      if (is_covered) at = &*on_top;
    }
  }
  return *at;
}

MountEntry* MountTree::top_at(const std::string& path) {
  const mounts::Mount* top = mounts::mounted_at(*table(), path);
  if (top == nullptr) return nullptr;
  const int id = top->id;
  return &*std::ranges::find_if(entries_, [&](const MountEntry& one) { return one.shown.id == id; });
}

bool MountTree::has_folder(const std::string& path) {
  return resolve(path).shown.target.native() == path || folders_at(path).has(path);
}

Folders& MountTree::folders_at(const std::string& path) {
  MountEntry& at = resolve(path);
  return at.shown.id == kRootMount ? root_ : at.folders;
}

// As the kernel does, which gives the number of a mount that is gone to the next one.
int MountTree::free_id() const {
  int id = kRootMount + 1;
  while (std::ranges::any_of(entries_, [&](const MountEntry& one) { return one.shown.id == id; })) ++id;
  return id;
}

MountEntry& MountTree::add(const std::string& target, mounts::Mount shown) {
  shown.parent_id = resolve(target).shown.id;
  shown.id = free_id();
  shown.target = target;
  MountEntry entry;
  entry.shown = std::move(shown);
  entries_.push_back(std::move(entry));
  is_table_old_ = true;
  return entries_.back();
}

int MountTree::mount(const HeadPtr& head, const std::string& target, bool read_only, bool no_recovery,
                     const std::string& options, bool by_hand) {
  if (!has_folder(target)) return ENOENT;
  if (const int error = file_systems_.check_readable(*head); error != 0) return error;
  const MountEntry& below = resolve(target);
  if (below.super && below.super->head == head && below.shown.target.native() == target) return EBUSY;
  SuperPtr super;
  for (const SuperPtr& known : supers()) {
    if (known->head != head) continue;
    if (known->read_only != read_only || !is_mounted(*known)) return EBUSY;
    super = known;
  }
  if (!super) {
    super = std::make_shared<Super>();
    super->head = head;
    super->read_only = read_only;
    super->no_recovery = no_recovery;
    super->by_hand = by_hand;
    if (const int error = file_systems_.open(*super); error != 0) return error;
  }
  mounts::Mount shown;
  shown.source = head->path();
  shown.type = head->disk->fs.type;
  shown.options = (read_only ? "ro" : "rw") + (options.empty() ? "" : "," + options);
  shown.device_number = head->device_number();
  MountEntry& entry = add(target, std::move(shown));
  entry.super = super;
  entry.by_hand = by_hand;
  return 0;
}

int MountTree::bind(const std::string& from, const std::string& target) {
  if (!has_folder(target)) return ENOENT;
  const MountEntry source = resolve(from);
  mounts::Mount shown = source.shown;
  MountEntry& entry = add(target, std::move(shown));
  entry.super = source.super;
  entry.root = entry.shown.root = "/folder";
  entry.by_hand = true;
  return 0;
}

int MountTree::mount_tmpfs(const std::string& target) {
  if (!has_folder(target)) return ENOENT;
  mounts::Mount shown;
  shown.source = "none";
  shown.type = "tmpfs";
  shown.options = shown.super_options = "rw";
  shown.device_number = static_cast<dev_t>(100 + free_id());
  add(target, std::move(shown)).by_hand = true;
  return 0;
}

int MountTree::unmount(const std::string& target, SuperPtr& closing) {
  const MountEntry& entry = resolve(target);
  const int id = entry.shown.id;
  if (id == kRootMount || entry.shown.target.native() != target) return EINVAL;
  const bool has_children =
      std::ranges::any_of(entries_, [&](const MountEntry& one) { return one.shown.parent_id == id; });
  if (has_children || !entry.files.empty()) return EBUSY;
  const SuperPtr super = entry.super;
  std::erase_if(entries_, [&](const MountEntry& one) { return one.shown.id == id; });
  is_table_old_ = true;
  if (super && !is_mounted(*super)) {
    file_systems_.unmounted(super);
    closing = super;
  }
  return 0;
}

int MountTree::detach(const std::string& target) {
  SuperPtr closing;
  const int error = unmount(target, closing);
  const MountEntry& entry = resolve(target);
  const int id = entry.shown.id;
  if (error != EBUSY || entry.files.empty()) return error;
  detached_.push_back(entry);
  std::erase_if(entries_, [&](const MountEntry& one) { return one.shown.id == id; });
  is_table_old_ = true;
  return 0;
}

int MountTree::remount(MountEntry& entry, bool read_only) {
  if (!entry.super->is_alive()) return EIO;
  for (const MountEntry& one : entries_) {
    const bool writes = std::ranges::any_of(one.files, &OpenFile::is_for_writing);
    if (read_only && one.super == entry.super && writes) return EBUSY;
  }
  if (const int error = file_systems_.reopen(*entry.super, read_only); error != 0) return error;
  for (MountEntry& one : entries_) {
    if (one.super != entry.super) continue;
    one.shown.options.replace(0, 2, read_only ? "ro" : "rw");
  }
  is_table_old_ = true;
  return 0;
}

bool MountTree::close_files() {
  bool were_open = false;
  for (auto* list : {&entries_, &detached_}) {
    for (MountEntry& one : *list) {
      were_open = were_open || !one.files.empty();
      one.files.clear();
    }
  }
  close_unused();
  return were_open;
}

// With everything on top of it.
void MountTree::remove_if(const std::function<bool(const MountEntry&)>& is_wanted) {
  std::set<int> removed;
  for (const MountEntry& one : entries_) {
    if (is_wanted(one) || removed.contains(one.shown.parent_id)) removed.insert(one.shown.id);
  }
  const auto before = supers();
  std::erase_if(entries_, [&](const MountEntry& one) { return removed.contains(one.shown.id); });
  for (const SuperPtr& super : before) {
    const bool is_closing =
        std::ranges::find(file_systems_.closing(), super) != file_systems_.closing().end();
    if (!is_mounted(*super) && !is_closing) file_systems_.unmounted(super);
  }
  is_table_old_ = true;
}

void MountTree::close_unused() {
  std::vector<SuperPtr> unused;
  for (const MountEntry& one : detached_) {
    if (one.files.empty() && one.super) unused.push_back(one.super);
  }
  std::erase_if(detached_, [](const MountEntry& one) { return one.files.empty(); });
  for (const SuperPtr& super : unused) {
    if (!is_mounted(*super)) file_systems_.unmounted(super);
  }
}

void MountTree::device_gone(const HeadPtr& head, Actor by) {
  for (const SuperPtr& super : supers()) {
    if (super->head == head && !super->is_dead) file_systems_.device_gone(*super, by, is_mounted(*super));
  }
  is_table_old_ = true;
}

void MountTree::tick() {
  for (const SuperPtr& super : supers()) file_systems_.keep(*super);
  close_unused();
  file_systems_.close_due();
}

bool MountTree::is_mounted(const Super& super) const {
  const auto is_its = [&](const MountEntry& one) { return one.super.get() == &super; };
  return std::ranges::any_of(entries_, is_its) || std::ranges::any_of(detached_, is_its);
}

bool MountTree::is_used_detached(const Super& super) const {
  return std::ranges::any_of(
      detached_, [&](const MountEntry& one) { return one.super.get() == &super && !one.files.empty(); });
}

std::vector<SuperPtr> MountTree::supers() const {
  std::vector<SuperPtr> all = file_systems_.closing();
  for (const auto* list : {&entries_, &detached_}) {
    for (const MountEntry& one : *list) {
      if (one.super && std::ranges::find(all, one.super) == all.end()) all.push_back(one.super);
    }
  }
  return all;
}

}  // namespace spark::histories
