#include "daemon/mounts/users.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 8;

// The kernel generates the link's text from memory; it accesses no file system.
bool links_into(const fs::path& link, const Mount& mount) {
  std::error_code error;
  const fs::path place = fs::read_symlink(link, error);
  return !error && is_at_or_below(place.native(), mount.target.native());
}

// By mount ID: this also finds deleted files, and excludes files of a mount below or above.
bool has_open_file(const fs::path& process, const Mount& mount) {
  const std::string wanted = "mnt_id:\t" + std::to_string(mount.id) + "\n";
  for (const fs::path& entry : list_folder(process / "fdinfo")) {
    const auto info = read_file(entry);
    if (info && info->find(wanted) != std::string::npos) return true;
  }
  return false;
}

bool has_mapping(const fs::path& process, const Mount& mount) {
  const auto maps = read_file(process / "maps", 64 << 20);
  if (!maps) return false;
  const std::string folder = " " + mount.target.native() + "/";
  return maps->find(folder) != std::string::npos;
}

std::string how_used(const fs::path& process, const Mount& mount) {
  if (links_into(process / "cwd", mount)) return "working folder";
  if (links_into(process / "root", mount)) return "root folder";
  if (has_open_file(process, mount)) return "open file";
  if (links_into(process / "exe", mount)) return "program";
  if (has_mapping(process, mount)) return "mapped file";
  return {};
}

std::optional<pid_t> pid_of(const fs::path& process) {
  return parse_number<pid_t>(process.filename().native());
}

// The device's mounts as a process sees them: another mount namespace has a copy of each, with another ID.
struct View {
  std::vector<Mount> mounts;
  std::string where = " in another mount namespace";
};

class Views {
 public:
  Views(const SystemRoot& root, const Mount& mount) : device_(mount.device_number) {
    std::error_code error;
    seen_[fs::read_symlink(root / "proc/self/ns/mnt", error)] = {{mount}, ""};
  }
  const View& of(const fs::path& process) {
    std::error_code error;
    const auto [seen, is_new] = seen_.try_emplace(fs::read_symlink(process / "ns/mnt", error));
    if (!is_new) return seen->second;
    auto& mounts = seen->second.mounts;
    if (const auto text = read_file(process / "mountinfo", 16 << 20)) mounts = parse_mount_table(*text);
    std::erase_if(mounts, [&](const Mount& one) { return one.device_number != device_; });
    return seen->second;
  }

 private:
  dev_t device_;
  std::map<fs::path, View> seen_;  // by namespace
};

std::string how_used(const fs::path& process, const View& view) {
  for (const Mount& mount : view.mounts) {
    const std::string how = how_used(process, mount);
    if (!how.empty()) return how + view.where;
  }
  return {};
}

// Users in the kernel: NFS exports, swap files, loop devices.
void add_kernel_users(const SystemRoot& root, const Mount& mount, std::vector<User>& users) {
  const auto add_paths = [&](const fs::path& list, const std::string& what) {
    for (const std::string& line : split(read_file(list).value_or(""), '\n')) {
      const std::string path = line.substr(0, line.find_first_of(" \t"));
      if (is_at_or_below(path, mount.target.native())) users.push_back({0, "", what + " " + printable(path)});
    }
  };
  add_paths(root / "proc/fs/nfsd/exports", "the NFS export");
  add_paths(root / "proc/swaps", "the swap file");
  for (const fs::path& device : list_folder(root / "sys/block")) {
    const auto file = read_line_file(device / "loop/backing_file");
    if (file && is_at_or_below(*file, mount.target.native()))
      users.push_back({0, "", "the loop device of " + printable(*file)});
  }
}

// The cached attributes: a device or a server that does not answer is not waited for.
bool is_on(const fs::path& link, dev_t device) {
  struct statx found {};
  return ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, 0, &found) == 0 &&
         makedev(found.stx_dev_major, found.stx_dev_minor) == device;
}

bool has_any_on(const fs::path& folder, dev_t device) {
  for (const fs::path& entry : list_folder(folder)) {
    if (is_on(entry, device)) return true;
  }
  return false;
}

std::string how_used(const fs::path& process, dev_t device) {
  if (is_on(process / "cwd", device)) return "working folder";
  if (is_on(process / "root", device)) return "root folder";
  if (has_any_on(process / "fd", device)) return "open file";
  if (is_on(process / "exe", device)) return "program";
  return has_any_on(process / "map_files", device) ? "mapped file" : "";
}

std::string command_of(const fs::path& process) {
  const auto command = read_line_file(process / "comm");
  return command ? printable(*command) : "?";
}

}  // namespace

std::vector<User> users_of(const SystemRoot& root, const Mount& mount) {
  std::vector<User> users;
  Views views(root, mount);
  for (const fs::path& process : list_folder(root / "proc")) {
    const auto pid = pid_of(process);
    if (!pid) continue;
    std::string how = how_used(process, views.of(process));
    if (how.empty()) continue;
    users.push_back({*pid, command_of(process), std::move(how)});
  }
  add_kernel_users(root, mount, users);
  return users;
}

std::vector<User> users_elsewhere(const SystemRoot& root, dev_t device) {
  std::vector<User> users;
  std::error_code gone;
  std::set<fs::path> namespaces = {fs::read_symlink(root / "proc/self/ns/mnt", gone)};
  for (const fs::path& process : list_folder(root / "proc")) {
    const auto pid = pid_of(process);
    if (!pid || !namespaces.insert(fs::read_symlink(process / "ns/mnt", gone)).second || gone) continue;
    const auto table = read_mount_table(root, std::to_string(*pid));
    if (!table) continue;
    const auto shown = std::ranges::find(*table, device, &Mount::device_number);
    if (shown == table->end()) continue;
    users.push_back(
        {*pid, command_of(process), "mounted at " + printable(shown->target.native()) + " in its namespace"});
  }
  return users;
}

std::vector<User> users_of_detached(const SystemRoot& root, dev_t device) {
  std::vector<User> users;
  for (const fs::path& process : list_folder(root / "proc")) {
    const auto pid = pid_of(process);
    const std::string how = pid ? how_used(process, device) : "";
    if (!how.empty()) users.push_back({*pid, command_of(process), how + " on a mount that was detached"});
  }
  return users;
}

std::string describe_users(const std::vector<User>& users, const std::vector<Mount>& table,
                           const Mount& mount) {
  std::vector<std::string> all;
  for (const Mount& other : table) {
    if (other.parent_id == mount.id) all.push_back("the mount at " + printable(other.target.native()));
  }
  for (const User& user : users) {
    all.push_back(user.pid == 0 ? user.how
                                : user.command + " (pid " + std::to_string(user.pid) + ", " + user.how + ")");
  }
  if (all.empty()) return "no process that can be seen, and no NFS export, loop device or swap file";
  return join_first(all, kMostNamed);
}

}  // namespace spark::mounts
