#include "bench/facts/storage_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/network/addresses.hpp"
#include "base/text.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

// The controller settings to report: sysfs name → label.
constexpr std::array kControllerSettings = {
    std::pair{"model", "model"},
    std::pair{"firmware_rev", "firmware"},
    std::pair{"transport", "transport"},
    std::pair{"address", "address"},
    std::pair{"queue_count", "queues"},
    std::pair{"sqsize", "queue size"},
    std::pair{"kato", "keep-alive"},
    std::pair{"reconnect_delay", "reconnect delay"},
    std::pair{"ctrl_loss_tmo", "controller loss"},
};

// Types of network file systems beside NFS, whose bytes nothing counts.
constexpr std::array<std::string_view, 10> kOtherNas = {
    "cifs", "smb3", "9p", "ceph", "lustre", "beegfs", "gpfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names = names_in_folder(folder);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_like(const std::string& name, const char* pattern) {
  return std::regex_match(name, std::regex(pattern));
}

// "10.0.0.1" of "traddr=10.0.0.1,trsvcid=4420".
std::string option_of(const std::string& options, const std::string& key) {
  for (const std::string& option : split(options, ',')) {
    if (option.starts_with(key + "=")) return option.substr(key.size() + 1);
  }
  return {};
}

class Reader {
 public:
  Reader(const SystemRoot& root, StorageFacts& facts) : root_(root), facts_(facts) {}

  // Of the live paths over TCP to its target, each once.
  const std::vector<std::string>& nics() const { return nics_; }

  void look_at_device(const std::string& name) {
    std::error_code error;
    const fs::path folder = fs::canonical(root_ / ("sys/class/block/" + name), error);
    if (error) return;
    facts_.origin.device = name;
    if (facts_.kind == PathKind::Unknown) facts_.kind = PathKind::Local;
    look_at_disk(fs::exists(folder / "partition", error) ? folder.parent_path() : folder, 0);
  }

 private:
  void look_at_disk(const fs::path& disk, unsigned depth) {
    const std::vector<std::string> below = names_in(disk / "slaves");
    for (const std::string& name : below) {
      std::error_code error;
      const fs::path folder = fs::canonical(root_ / ("sys/class/block/" + name), error);
      if (error || depth > 8) continue;
      look_at_disk(fs::exists(folder / "partition", error) ? folder.parent_path() : folder, depth + 1);
    }
    set("device", disk.filename().string());
    for (const auto& [file, words] :
         {std::pair{"queue/read_ahead_kb", "read-ahead KiB"}, std::pair{"queue/scheduler", "scheduler"}}) {
      if (const auto value = read_line_file(disk / file); value && !value->empty()) set(words, *value);
    }
    look_for_controllers(disk);
  }

  // The disk is below its controller in sysfs, or with native multipath below its subsystem.
  void look_for_controllers(const fs::path& disk) {
    for (fs::path folder = disk.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
      const std::string name = folder.filename().string();
      if (is_like(name, "nvme[0-9]+")) return look_at_controller(name, disk.filename().string());
      if (!is_like(name, "nvme-subsys[0-9]+")) continue;
      for (const std::string& child : names_in(folder)) {
        if (is_like(child, "nvme[0-9]+")) look_at_controller(child, disk.filename().string());
      }
      return;
    }
  }

  void look_at_controller(const std::string& name, const std::string& disk) {
    const fs::path folder = root_ / ("sys/class/nvme/" + name);
    facts_.controllers.push_back(name);
    for (const auto& [file, words] : kControllerSettings) {
      const auto value = read_line_file(folder / file);
      if (value && !value->empty()) set(words, *value);
    }
    const std::string transport = read_line_file(folder / "transport").value_or("");
    if (transport == "tcp" || transport == "rdma" || transport == "fc") {
      facts_.kind = PathKind::RemoteBlock;
      const std::string address = read_line_file(folder / "address").value_or("");
      facts_.address = option_of(address, "traddr");
      std::string nic = option_of(address, "host_iface");
      if (nic.empty()) nic = nic_towards(facts_.address);
      const bool is_live = read_line_file(folder / "state").value_or("live") == "live";
      if (is_live && !nic.empty() && std::ranges::find(nics_, nic) == nics_.end()) nics_.push_back(nic);
    }
    // The paths of nvme3n1 are nvme3c4n1, nvme3c5n1, …: the number after 'c' identifies the controller.
    const std::string space = disk.substr(disk.rfind('n'));
    for (const std::string& child : names_in(folder)) {
      if (is_like(child, "nvme[0-9]+c[0-9]+n[0-9]+") && child.ends_with(space) &&
          child.starts_with(disk.substr(0, disk.rfind('n')) + "c")) {
        facts_.origin.path_devices.push_back(child);
      }
    }
  }

  void set(const std::string& name, const std::string& value) { facts_.settings.emplace_back(name, value); }

  const SystemRoot& root_;
  StorageFacts& facts_;
  std::vector<std::string> nics_;
};

// The device's name in sysfs: by number, or from the mount's source if the file system has its own st_dev.
std::string device_name(const SystemRoot& root, const MountFacts& mount, std::uint64_t device) {
  std::error_code error;
  const fs::path by_number = fs::canonical(root / ("sys/dev/block/" + device_text(device)), error);
  if (!error) return by_number.filename().string();
  if (!mount.source.starts_with("/dev/")) return {};
  const fs::path source = fs::canonical(root / mount.source.substr(1), error);
  return error ? fs::path(mount.source).filename().string() : source.filename().string();
}

// A btrfs has a folder with the names of all its drives.
std::vector<std::string> drives_of_btrfs(const SystemRoot& root, const std::string& device) {
  for (const std::string& name : names_in(root / "sys/fs/btrfs")) {
    std::vector<std::string> drives = names_in(root / "sys/fs/btrfs" / name / "devices");
    if (std::ranges::find(drives, device) != drives.end()) return drives;
  }
  return {};
}

NicFacts read_nic(const SystemRoot& root, const std::string& name) {
  NicFacts nic;
  nic.name = name;
  const fs::path folder = root / ("sys/class/net/" + name);
  const auto megabits = read_line_file(folder / "speed");  // -1 if unknown
  if (megabits) nic.bytes_per_second = std::max(0.0, std::strtod(megabits->c_str(), nullptr)) * 1e6 / 8;
  const auto mtu = read_line_file(folder / "mtu");
  if (mtu) nic.mtu = static_cast<unsigned>(std::strtoul(mtu->c_str(), nullptr, 10));
  return nic;
}

// As one card: a rate over several paths may be the sum of theirs.
NicFacts read_nics(const SystemRoot& root, const std::vector<std::string>& names) {
  NicFacts all = read_nic(root, names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    const NicFacts one = read_nic(root, names[i]);
    const bool is_known = all.bytes_per_second > 0 && one.bytes_per_second > 0;
    all.bytes_per_second = is_known ? all.bytes_per_second + one.bytes_per_second : 0;
    all.mtu = std::min(all.mtu, one.mtu);
    all.name += ", " + one.name;
  }
  return all;
}

void look_at_nfs(const SystemRoot& root, const MountFacts& mount, std::uint64_t device, StorageFacts& facts) {
  facts.kind = PathKind::Nas;
  facts.address = option_of(mount.options, "addr");
  if (facts.address.empty()) facts.address = mount.source.substr(0, mount.source.rfind(':'));
  facts.origin.nfs_mount = mount.mount_point;
  for (const char* option : {"vers", "nconnect", "rsize", "wsize", "proto"}) {
    std::string value = option_of(mount.options, option);
    if (value.empty() && std::string_view(option) == "nconnect") value = "1";  // the kernel omits this value
    if (!value.empty()) facts.settings.emplace_back(option, value);
  }
  const auto read_ahead = read_line_file(root / ("sys/class/bdi/" + device_text(device) + "/read_ahead_kb"));
  if (read_ahead && !read_ahead->empty()) facts.settings.emplace_back("read-ahead KiB", *read_ahead);
}

}  // namespace

StorageFacts read_storage_facts(const SystemRoot& root, const MountFacts& mount, std::uint64_t device) {
  StorageFacts facts;
  std::vector<std::string> nics;
  if (mount.type == "nfs" || mount.type == "nfs4") {
    look_at_nfs(root, mount, device, facts);
  } else if (std::ranges::find(kOtherNas, mount.type) != kOtherNas.end()) {
    facts.kind = PathKind::Nas;
  } else if (mount.type == "tmpfs" || mount.type == "ramfs") {
    facts.kind = PathKind::Memory;
  } else {
    const std::string name = device_name(root, mount, device);
    Reader reader(root, facts);
    if (!name.empty()) reader.look_at_device(name);
    nics = reader.nics();
    if (mount.type == "btrfs") {
      const auto drives = drives_of_btrfs(root, name);
      if (drives.size() > 1) facts.origin.path_devices = drives;
    }
  }
  if (nics.empty() && !facts.address.empty()) {
    std::string nic = nic_towards(facts.address);
    if (!nic.empty()) nics.push_back(std::move(nic));
  }
  if (nics.empty()) return facts;
  facts.origin.nic = nics.front();
  facts.origin.more_nics.assign(nics.begin() + 1, nics.end());
  facts.nic = read_nics(root, nics);
  return facts;
}

// Not for a name, which might have to be waited for.
std::string nic_towards(const std::string& address) {
  if (!look_up(address, 0, AI_NUMERICHOST)) return {};
  const auto own = address_towards(address);
  return own ? interface_of(*own) : "";
}

std::string state_of(const SystemRoot& root, const StorageFacts& facts, const std::string& mount_options) {
  std::string state = mount_options;
  for (const std::string& controller : facts.controllers) {
    const auto now = read_line_file(root / ("sys/class/nvme/" + controller + "/state"));
    state += "; " + controller + " " + (now ? *now : "is gone");
  }
  return state;
}

}  // namespace spark::bench
