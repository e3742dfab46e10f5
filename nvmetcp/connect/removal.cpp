#include "nvmetcp/connect/removal.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "nvmetcp/names.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{50};
constexpr std::chrono::milliseconds kTargetAnswersWithin{1500};

// A name can be taken by the next controller at once; its folder's inode can't.
std::optional<ino_t> identity_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return status.st_ino;
}

// Devices built on this block device or on one of its partitions: "dm-0", "md127".
std::vector<std::string> holders_of(const SystemRoot& root, const std::string& device) {
  const fs::path folder = root / "sys/class/block" / device;
  std::vector<std::string> holders = names_in_folder(folder / "holders");
  for (const std::string& child : names_in_folder(folder)) {
    if (!child.starts_with(device + "p")) continue;
    for (std::string& holder : names_in_folder(folder / child / "holders"))
      holders.push_back(std::move(holder));
  }
  return holders;
}

// The disks that a controller leads to, as programs open them: "nvme0n1".
std::vector<std::string> devices_of(const SystemRoot& root, const std::string& controller) {
  std::vector<std::string> devices;
  for (const std::string& name : names_in_folder(root / "sys/class/nvme" / controller)) {
    if (const auto node = parse_namespace_name(name)) devices.push_back(node->block_device());
  }
  return devices;
}

// Those that no controller outside the leaving ones leads to. Another one of the same NQN may be of another
// target.
std::vector<std::string> lost_with(const SystemRoot& root, const std::vector<Controller>& all,
                                   const std::vector<std::string>& leaving) {
  std::vector<std::string> lost, kept;
  for (const Controller& one : all) {
    const bool leaves = std::find(leaving.begin(), leaving.end(), one.name) != leaving.end();
    if (!leaves && one.is_going()) continue;
    for (const std::string& device : devices_of(root, one.name)) (leaves ? lost : kept).push_back(device);
  }
  for (const std::string& device : kept) std::erase(lost, device);
  return lost;
}

Result<> refuse_if_used(const SystemRoot& root, const std::string& controller,
                        const std::vector<std::string>& devices, const CutOff& cut_off) {
  for (const std::string& device : devices) {
    const auto number = device_number(root, device);
    if (number && cut_off.covers(*number)) continue;
    if (const auto holders = holders_of(root, device); !holders.empty()) {
      return fail(Errc::Refused,
                  "disconnecting " + controller + ": " + join(holders, ", ") + " is built on its " + device,
                  "take that device down first (`dmsetup remove`, `mdadm --stop`, `vgchange -an`)");
    }
    if (is_device_claimed(root / "dev" / device)) {
      return fail(Errc::Refused,
                  "disconnecting " + controller + ": its " + device +
                      " is still in use on this host, mounted or as swap, perhaps in a container",
                  "`lsblk /dev/" + device + "` shows where; unmount it there first");
    }
  }
  return {};
}

// Removing a controller that the kernel still takes for live waits 60 s in the kernel for a target that is
// dead. So the kernel is given the time to notice by its keep-alive; from then on the removal takes no time
// at all.
void wait_while_dead_but_live(const SystemRoot& root, const Controller& controller, SteadyTime end) {
  if (!controller.is_live() || reach(controller.portal, controller.interface, kTargetAnswersWithin)) return;
  const fs::path state = root / "sys/class/nvme" / controller.name / "state";
  while (read_line_file(state).value_or("gone") == "live" && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookAgain);
  }
}

Result<> start_removal(const SystemRoot& root, const std::string& controller) {
  const fs::path path = root / "sys/class/nvme" / controller / "delete_controller";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd && ::write(fd.get(), "1", 1) == 1) return {};
  // Another removal is in progress: only wait for its end.
  if (errno == ENOENT || errno == ENODEV || errno == EBUSY) return {};
  return fail_errno(errno, "disconnecting " + controller,
                    errno == EACCES || errno == EPERM ? "only root may disconnect" : "");
}

}  // namespace

Result<> check_unused(const SystemRoot& root, const std::vector<std::string>& leaving,
                      const CutOff& cut_off) {
  if (cut_off.is_all) return {};
  const auto all = list_controllers(root);
  if (!all) return fail(all.error());
  return refuse_if_used(root, join(leaving, ", "), lost_with(root, *all, leaving), cut_off);
}

Result<Change> remove_controller(const SystemRoot& root, const std::string& controller,
                                 const std::string& subsystem, const CutOff& cut_off,
                                 std::chrono::milliseconds deadline) {
  if (!is_controller_name(controller)) {
    return fail(Errc::Invalid, "\"" + printable(controller) + "\" is not the name of a controller");
  }
  const auto end = std::chrono::steady_clock::now() + deadline;
  const fs::path folder = root / "sys/class/nvme" / controller;
  const auto identity = identity_of(folder);
  auto all = list_controllers(root);
  if (!all) return all.take_error();
  const auto found = std::find_if(all->begin(), all->end(),
                                  [&](const Controller& other) { return other.name == controller; });
  if (!identity || found == all->end()) return Change::AlreadyThere;
  if (found->subsystem != subsystem || found->transport != "tcp") {
    return fail(Errc::Refused,
                "disconnecting " + controller + ": it belongs to " + printable(found->subsystem) + " (" +
                    printable(found->transport) + "), not to " + printable(subsystem),
                "names of controllers move; ask for its name again");
  }
  if (is_foreign(*found)) {
    return fail(Errc::Refused, "disconnecting " + controller + ": it belongs to " + found->owner,
                "that program manages it: disconnect it there");
  }
  wait_while_dead_but_live(root, *found, end);
  if (auto free = check_unused(root, {controller}, cut_off); !free) return free.take_error();
  if (auto started = start_removal(root, controller); !started) {
    return started.take_error();
  }
  while (identity_of(folder) == identity) {
    if (std::chrono::steady_clock::now() >= end) {
      return fail(
          Errc::TimedOut,
          "disconnecting " + controller + " of " + printable(subsystem) + ": the kernel has not finished",
          "its target does not answer; the removal continues in the background");
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  disown(root, controller);
  return Change::Done;
}

}  // namespace spark::nvmetcp
