// Manual setups that conflict with the daemon, or endanger the data: fstab, units, mounts.
#include <algorithm>
#include <functional>

#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "migration/import.hpp"
#include "migration/survey/survey.hpp"

namespace spark::doctor {
namespace {

// The manual setup, and what `import` would make of it.
struct Setup {
  const Host& host;
  const host::Survey survey = host::survey(host.root);
  const host::Imported imported = host::import_configuration(host.root, survey, WallTime{});
};

using IsItem = std::function<bool(const host::Item&)>;

// Not a command for this thing alone: its volume is mounted, and its unit has to give way in the same move.
std::string move_in(const Setup& setup, const IsItem& is_it) {
  const auto& items = setup.imported.items;
  const auto item = std::ranges::find_if(items, is_it);
  if (item != items.end() && !item->is_taken()) return "spark-stage import would leave it: " + item->reason;
  if (!setup.host.config && setup.host.config.error().kind == Errc::NotFound)
    return "sudo spark-stage import takes it over; its last lines are the steps";
  return "sudo spark-stage import prints an entry for it, and the steps: add the entry to the configuration "
         "that is there, then take the steps";
}

IsItem of_unit(const std::string& file) {
  return [file](const host::Item& item) {
    return std::ranges::any_of(item.units, [&](const host::UnitFile& unit) { return unit.file == file; });
  };
}

IsItem of_line(const host::FstabLine& line) {
  return [text = line.text](const host::Item& item) { return item.fstab_line == text; };
}

const config::Volume* volume_at(const config::Config& config, const std::string& mount) {
  const auto at = std::ranges::find(config.volumes, std::filesystem::path(mount), &config::Volume::mount);
  return at == config.volumes.end() ? nullptr : &*at;
}

// A device of a target, a part of one or made of one, or one that was there when the line was written and is
// no drive of this host now.
bool is_shared(const Setup& setup, const host::FstabLine& line) {
  const SystemRoot& root = setup.host.root;
  if (host::fabric_below(root, setup.survey.devices, line.source) != nullptr) return true;
  const bool is_remote = line.is_block_device() && mounts::has_option(line.options, "_netdev");
  const bool is_here = host::is_present(root, line.source);
  return host::is_kernel_name(line.source) ? is_remote || !is_here : is_remote && !is_here;
}

// systemd does not wait for such a line at boot.
bool delays_no_boot(const host::FstabLine& line) {
  return mounts::has_option(line.options, "noauto") ||
         mounts::has_option(line.options, "x-systemd.automount");
}

// Only a person mounts it.
bool is_on_request(const host::FstabLine& line) {
  return mounts::has_option(line.options, "noauto") &&
         !mounts::has_option(line.options, "x-systemd.automount");
}

std::vector<std::string> faults_anywhere(const host::FstabLine& line) {
  std::vector<std::string> faults;
  if (host::is_kernel_name(line.source)) {
    faults.push_back("names a device by the order of connecting: after a boot it may be another volume");
  }
  if (!mounts::has_option(line.options, "ro")) {
    faults.push_back("mounts read-write: two hosts that do so damage the file system");
  }
  return faults;
}

// Every fault of one line, so that one edit fixes the line.
std::vector<std::string> faults_of(const host::FstabLine& line) {
  std::vector<std::string> faults = faults_anywhere(line);
  if (!mounts::has_option(line.options, "nofail") && !delays_no_boot(line)) {
    faults.push_back("has no nofail: a target that is away stops the boot");
  }
  if (!mounts::has_option(line.options, "_netdev")) {
    faults.push_back(
        "has no _netdev: it is mounted before the network is there, and unmounted after it is gone");
  }
  if (line.pass != 0) faults.push_back("asks for fsck at boot, while another host may have it open");
  return faults;
}

// Many hosts may write one NFS export, and no fsck runs at boot: only the boot itself can suffer. systemd
// treats `bg` as nofail, and an automount delays nothing.
std::vector<std::string> missing_for_nfs(const host::FstabLine& line) {
  const auto has = [&](const char* option) { return mounts::has_option(line.options, option); };
  if (delays_no_boot(line)) return {};
  std::vector<std::string> missing;
  if (!has("nofail") && !has("bg")) missing.push_back("nofail");
  if (!has("_netdev")) missing.push_back("_netdev");
  return missing;
}

void check_nfs_line(const Setup& setup, const std::string& what, const host::FstabLine& line,
                    Report& report) {
  const auto missing = missing_for_nfs(line);
  if (missing.empty()) return;
  const std::string options = join(missing, ",");
  const std::string edit = line.options.empty() ? "s/^(\\s*\\S+\\s+\\S+\\s+\\S+).*/\\1 " + options
                                                : "s/^(\\s*\\S+\\s+\\S+\\s+\\S+\\s+\\S+)/\\1," + options;
  std::vector<std::string> why;
  for (const std::string& option : missing) {
    why.push_back(
        option == "nofail"
            ? "without nofail a server that is away holds up the boot"
            : "without _netdev a program that does not treat NFS as a network mount mounts it before "
              "the network is there");
  }
  report.note("fstab", what + " has no " + join(missing, " and no "), join(why, "; "),
              move_in(setup, of_line(line)) + "; or: sudo sed -Ei '" + std::to_string(line.number) + edit +
                  "/' /etc/fstab && sudo systemctl daemon-reload");
}

void check_line(const Setup& setup, const host::FstabLine& line, Report& report) {
  const std::string what = "line " + std::to_string(line.number) + " of /etc/fstab (" +
                           printable(line.source) + " on " + printable(line.mount) + ")";
  if (const config::Volume* volume = volume_at(setup.host.settings(), line.mount)) {
    if (is_on_request(line)) return;  // `import` lets such a line stay
    report.wrong(
        "fstab", what + " mounts the device of volume " + printable(volume->name),
        "the first of the two decides which file system is mounted there, and how",
        "sudo sed -i '" + std::to_string(line.number) + "s/^/#/' /etc/fstab && sudo systemctl daemon-reload");
    return;
  }
  if (line.is_nfs()) return check_nfs_line(setup, what, line, report);
  if (!is_shared(setup, line)) return;
  const auto faults = faults_of(line);
  if (!faults.empty()) report.wrong("fstab", what, join(faults, "; "), move_in(setup, of_line(line)));
}

// systemd reads nofail and _netdev in fstab alone.
void check_shared_mount(const Setup& setup, const host::MountUnit& mount, Report& report) {
  const auto faults = faults_anywhere(mount.mount);
  if (faults.empty()) return;
  report.wrong("unit",
               printable(mount.units.front().name) + " (" + printable(mount.mount.source) + " on " +
                   printable(mount.mount.mount) + ")",
               join(faults, "; "), move_in(setup, of_unit(mount.units.front().file)));
}

// Its mount unit and the daemon would both mount it.
void check_mount_unit(const Setup& setup, const host::MountUnit& mount, Report& report) {
  const config::Volume* volume = volume_at(setup.host.settings(), mount.mount.mount);
  if (volume == nullptr) {
    if (is_shared(setup, mount.mount)) check_shared_mount(setup, mount, report);
    return;
  }
  std::vector<std::string> names, files;
  for (const host::UnitFile& unit : mount.units) {
    names.push_back(printable(unit.name));
    files.push_back(printable(unit.file));
  }
  report.wrong("unit", names.front() + " mounts at the mount point of volume " + printable(volume->name),
               "the first of the two decides which file system is mounted there, and how",
               "sudo systemctl disable '" + join(names, "' '") + "' && sudo mv '" + join(files, "' '") +
                   "' /root/ && sudo systemctl daemon-reload");
}

// Ten minutes are the kernel's default; a negative limit is none.
bool gives_up(const host::ConnectUnit& unit) {
  const auto has_limit = [](const host::ManualConnection& connection) {
    const auto limit = connection.settings.find("ctrl-loss-tmo");
    return limit == connection.settings.end() || !limit->second.starts_with('-');
  };
  return std::ranges::any_of(unit.connections, has_limit) || std::ranges::any_of(unit.discovered, has_limit);
}

void check_unit(const Setup& setup, const host::ConnectUnit& unit, Report& report) {
  if (unit.connections.empty() && !unit.connects_all) return;
  std::vector<std::string> faults;
  if (!unit.tries_again) faults.push_back("a target that is away at boot is never connected");
  if (unit.stops_early) faults.push_back("when the first connection fails, the others are not tried");
  if (unit.disconnects) faults.push_back("stopping it disconnects under the mount");
  if (gives_up(unit)) faults.push_back("the kernel gives up after ten minutes and takes the device away");
  if (faults.empty()) return;
  report.wrong("unit", printable(unit.name) + " connects by hand" + (unit.tries_again ? "" : ", once"),
               join(faults, "; "),
               move_in(setup, of_unit(unit.file)) +
                   std::string(unit.disconnects ? "; do not stop the unit before" : ""));
}

// Mounted somewhere else than configured: by a desktop, or by hand.
void check_mounts(const Setup& setup, Report& report) {
  const Host& host = setup.host;
  const host::Survey& survey = setup.survey;
  for (const mounts::Mount& mount : survey.mounts) {
    const host::FabricDevice* device = host::find_device(host.root, survey.devices, mount.source);
    // Lines of fstab were reported there.
    const bool is_known = volume_at(host.settings(), mount.target.native()) != nullptr ||
                          std::any_of(survey.fstab.begin(), survey.fstab.end(),
                                      [&](const auto& line) { return mount.target == line.mount; });
    if (device == nullptr || is_known) continue;
    const bool by_desktop =
        mount.target.native().starts_with("/media/") || mount.target.native().starts_with("/run/media/");
    const std::string where =
        printable(device->subsystem) + " is mounted on " + printable(mount.target.native());
    if (by_desktop) {
      report.wrong("mount", where + " by the desktop",
                   "the desktop mounts it without checking whether another host has it open",
                   // Who labels a disk names the folder that a desktop mounts it on.
                   "sudo umount " + shell_word(printable(mount.target.native())) +
                       "; echo 'SUBSYSTEM==\"block\", ATTRS{transport}==\"tcp\", ENV{UDISKS_IGNORE}=\"1\"' | "
                       "sudo tee /etc/udev/rules.d/90-spark-stage.rules");
    } else if (!mounts::is_read_only(mount)) {
      report.note("mount", where + ", read-write, and no volume of the configuration",
                  "two hosts that mount it so damage it, and it does not come back when it is lost",
                  move_in(setup, [&](const host::Item& item) {
                    return item.where == printable(mount.target.native()) && item.what.starts_with("volume ");
                  }));
    }
  }
}

}  // namespace

void check_manual_setup(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  const Setup setup{host};
  for (const std::string& sentence : setup.survey.unread) report.unknown.push_back(sentence);
  for (const host::FstabLine& line : setup.survey.fstab) check_line(setup, line, report);
  for (const host::MountUnit& mount : setup.survey.mount_units) check_mount_unit(setup, mount, report);
  for (const host::ConnectUnit& unit : setup.survey.units) check_unit(setup, unit, report);
  check_mounts(setup, report);
  report.fine_since(before, "fstab, units and mounts");
}

}  // namespace spark::doctor
