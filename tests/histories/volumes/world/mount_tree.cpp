#include "tests/histories/volumes/world/mount_tree.hpp"

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"

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

MountTree::MountTree(Scene scene, NvmeDriver& driver, std::string node_name, int* last_super)
    : scene_(scene), driver_(driver), node_name_(std::move(node_name)), last_super_(last_super) {
  reboot();
}

void MountTree::reboot() {
  entries_.clear();
  detached_.clear();
  closing_.clear();
  MountEntry root;
  root.shown = root_mount();
  entries_.push_back(std::move(root));
  changed();
}

void MountTree::changed() {
  is_table_old_ = true;
  changed_at_ = scene_.time.steady();
}

const Result<std::vector<mounts::Mount>>& MountTree::table() {
  if (!std::exchange(is_table_old_, false)) return table_;
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
  MountEntry& at = resolve(path);
  if (at.shown.target.native() == path) return true;
  if (at.shown.id == kRootMount) return folders_.contains(path);
  return at.folders.contains(path);
}

void MountTree::make_folder(const std::string& path) {
  MountEntry& at = resolve(path);
  if (at.shown.id == kRootMount) {
    (void)folders_[path];
  } else {
    at.folders.insert(path);
  }
}

bool MountTree::has_files(const std::string& path) {
  const auto folder = folders_.find(path);
  return resolve(path).shown.id == kRootMount && folder != folders_.end() && !folder->second.files.empty();
}

MountEntry& MountTree::add(const std::string& target, mounts::Mount shown) {
  shown.parent_id = resolve(target).shown.id;
  shown.id = next_id_++;
  shown.target = target;
  MountEntry entry;
  entry.shown = std::move(shown);
  entries_.push_back(std::move(entry));
  changed();
  return entries_.back();
}

int MountTree::mount(const HeadPtr& head, const std::string& target, bool read_only, bool no_recovery,
                     const std::string& options, bool by_hand) {
  if (!has_folder(target)) return ENOENT;
  if (head->is_gone) return ENXIO;
  if (driver_.io(*head) != Io::Good) return EIO;
  const FileSystem& fs = head->disk->fs;
  if (fs.type.empty()) return EINVAL;
  const MountEntry& below = resolve(target);
  if (below.super && below.super->head == head && below.shown.target.native() == target) return EBUSY;
  SuperPtr super;
  for (const SuperPtr& known : supers()) {
    if (known->head != head) continue;
    if (known->read_only != read_only || !is_mounted(*known)) return EBUSY;
    super = known;
  }
  if (!super) {
    const bool replays = fs.is_open && !no_recovery;
    if ((replays || !read_only) && head->read_only) return EROFS;
    if ((replays || !read_only) && !driver_.may_write(*head)) return EBADE;
    super = std::make_shared<Super>();
    super->id = ++*last_super_;
    super->head = head;
    super->type = fs.type;
    super->uuid = fs.uuid;
    super->read_only = read_only;
    super->no_recovery = no_recovery;
    super->by_hand = by_hand;
    super->published = fs.published;
    super->damage = fs.damage;
    super->mmp_sequence = scene_.random.below(0x7FFFFFFF);
    super->base_writer = fs.writer;
    const auto open = [&](FileSystem& written) {
      written.writer = super->base_writer = super->id;
      written.is_writer_by_hand = by_hand;
      if (read_only) {
        written.is_open = false;  // the journal was replayed
        ++written.stamp;
        return;
      }
      written.is_open = written.is_open || written.type == "ext4";
      if (written.type == "ext4") ++written.stamp;
      written.mmp_open = written.has_mmp;
      written.mmp_sequence = super->mmp_sequence;
      if (written.has_mmp) written.mmp_node = node_name_;
    };
    if (!read_only && !by_hand) on_open(*super);
    if (!read_only || replays) open(head->disk->fs);
  }
  mounts::Mount shown;
  shown.source = head->path();
  shown.type = fs.type;
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
  entry.root = "/folder";
  entry.by_hand = true;
  return 0;
}

int MountTree::mount_tmpfs(const std::string& target) {
  if (!has_folder(target)) return ENOENT;
  mounts::Mount shown;
  shown.source = "none";
  shown.type = "tmpfs";
  shown.options = shown.super_options = "rw";
  shown.device_number = static_cast<dev_t>(100 + next_id_);
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
  changed();
  if (super && !is_mounted(*super)) {
    closing_.push_back(super);
    closing = super;
  }
  return 0;
}

int MountTree::detach(const std::string& target) {
  const MountEntry& entry = resolve(target);
  const int id = entry.shown.id;
  if (id == kRootMount || entry.shown.target.native() != target) return EINVAL;
  if (entry.files.empty()) {
    SuperPtr closing;
    return unmount(target, closing);
  }
  detached_.push_back(entry);
  std::erase_if(entries_, [&](const MountEntry& one) { return one.shown.id == id; });
  changed();
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
    const bool is_closing = std::ranges::find(closing_, super) != closing_.end();
    if (!is_mounted(*super) && !is_closing) closing_.push_back(super);
  }
  changed();
}

bool MountTree::is_mounted(const Super& super) const {
  const auto is_its = [&](const MountEntry& one) { return one.super.get() == &super; };
  return std::ranges::any_of(entries_, is_its) || std::ranges::any_of(detached_, is_its);
}

std::vector<SuperPtr> MountTree::supers() const {
  std::vector<SuperPtr> all = closing_;
  for (const auto* list : {&entries_, &detached_}) {
    for (const MountEntry& one : *list) {
      if (one.super && std::ranges::find(all, one.super) == all.end()) all.push_back(one.super);
    }
  }
  return all;
}

}  // namespace spark::histories
