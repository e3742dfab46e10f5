#include "nvmetcp/sysfs/sysfs.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/names.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBelieved{30};  // a resized namespace keeps its folders
constexpr Bytes kSector = 512;  // the unit of every `size` in sysfs, whatever the device's block size

// nvme2 before nvme10; a folder that went away meanwhile has no more names.
std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names = names_in_folder(folder, error);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::forward_as_tuple(a.size(), a) < std::forward_as_tuple(b.size(), b);
  });
  return names;
}

// "traddr=10.0.0.5,trsvcid=4420,host_iface=eth0,src_addr=10.0.0.9"
void read_address(const std::string& address, Controller& controller) {
  for (const std::string& part : split(address, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view key = std::string_view(part).substr(0, equals);
    const std::string value = part.substr(equals + 1);
    if (key == "traddr") controller.portal.address = value;
    if (key == "trsvcid") controller.portal.port = parse_number<std::uint16_t>(value).value_or(0);
    if (key == "host_iface") controller.interface = value;
  }
}

// No value for a controller that went away while it was read.
std::optional<Controller> read_controller(const fs::path& folder) {
  auto state = read_line_file(folder / "state");
  auto transport = read_line_file(folder / "transport");
  auto subsystem = read_line_file(folder / "subsysnqn");
  if (!state || !transport || !subsystem) return std::nullopt;
  Controller controller;
  controller.name = folder.filename().native();
  controller.state = std::move(*state);
  controller.transport = std::move(*transport);
  controller.subsystem = std::move(*subsystem);
  controller.is_discovery = controller.subsystem == kDiscoveryNqn ||
                            read_line_file(folder / "cntrltype").value_or("") == "discovery";
  controller.host_nqn = read_line_file(folder / "hostnqn").value_or("");
  controller.host_id = read_line_file(folder / "hostid").value_or("");
  controller.portal = {"", 0};
  if (controller.transport == "tcp") {
    const auto address = read_line_file(folder / "address");
    if (!address) return std::nullopt;
    read_address(*address, controller);
  }
  return controller;
}

std::optional<Controller> read_state(const fs::path& folder, Controller controller) {
  auto state = read_line_file(folder / "state");
  if (!state) return std::nullopt;
  controller.state = std::move(*state);
  return controller;
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

Result<Namespace> read_namespace(const SystemRoot& root, const std::string& device, std::uint32_t nsid) {
  const fs::path folder = root / "sys/class/block" / device;
  const auto its_number = device_number(root, device);
  const auto sectors = parse_number<Bytes>(read_line_file(folder / "size").value_or(""));
  if (!its_number || !sectors) {
    return fail(Errc::NotFound, "block device " + device + " is not there (yet, or any more)");
  }
  Namespace found;
  found.device = device;
  found.nsid = nsid;
  found.bytes = *sectors * kSector;
  found.device_number = *its_number;
  found.uuid = read_line_file(folder / "uuid").value_or("");
  found.nguid = read_line_file(folder / "nguid").value_or("");
  found.eui = without_spaces(read_line_file(folder / "eui").value_or(""));
  // The kernel shows the NGUID in the place of a UUID that the target does not give.
  if (found.uuid == found.nguid) found.uuid.clear();
  return found;
}

struct Found {
  Namespace space;
  std::string controller, node;  // its controller and path device: "nvme3", "nvme0c3n1"
};

// A dead mount keeps a head without a path: no controller has a path device of it any more.
// So the search goes from the controllers down, never over the heads.
Result<Found> search(const SystemRoot& root, const std::vector<Controller>& all, const std::string& subsystem,
                     std::uint32_t nsid) {
  auto controllers = controllers_of(all, subsystem, "");
  std::erase_if(controllers, [](const Controller& controller) { return controller.is_going(); });
  std::stable_partition(controllers.begin(), controllers.end(),
                        [](const Controller& controller) { return controller.is_live(); });
  const std::string wanted = "namespace " + std::to_string(nsid) + " of " + printable(subsystem);
  if (controllers.empty()) return fail(Errc::NotFound, wanted + " is not there: no controller is connected");

  std::vector<std::string> offered;
  for (const Controller& controller : controllers) {
    std::error_code ignored;  // a controller that vanishes has no namespaces
    const fs::path folder = root / "sys/class/nvme" / controller.name;
    for (const std::string& name : names_in(folder, ignored)) {
      const auto node = parse_namespace_name(name);
      if (!node) continue;
      const auto its_nsid = parse_number<std::uint32_t>(read_line_file(folder / name / "nsid").value_or(""));
      if (!its_nsid) continue;
      if (*its_nsid != nsid) {
        offered.push_back(std::to_string(*its_nsid));
        continue;
      }
      if (auto found = read_namespace(root, node->block_device(), nsid))
        return Found{std::move(*found), controller.name, name};
    }
  }
  return fail(Errc::NotFound, wanted + " is not there (yet)",
              offered.empty() ? "" : "the target offers namespace " + join(offered, ", "));
}

// 0: there is none.
ino_t inode_of(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

std::optional<dev_t> device_number(const SystemRoot& root, const std::string& device) {
  const auto numbers = split(read_line_file(root / "sys/class/block" / device / "dev").value_or(""), ':');
  const auto major = parse_number<unsigned>(numbers.front());
  const auto minor = numbers.size() == 2 ? parse_number<unsigned>(numbers.back()) : std::nullopt;
  return major && minor ? std::optional(makedev(*major, *minor)) : std::nullopt;
}

Result<std::vector<Controller>> list_controllers(const SystemRoot& root) {
  return ControllerList(root).look();
}

Result<std::vector<Controller>> ControllerList::look() {
  const SystemRoot& root = root_;
  const fs::path folder = root / "sys/class/nvme";
  std::error_code error;
  const auto names = names_in(folder, error);
  // No such folder: no NVMe driver is loaded, so there is no controller.
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail_errno(error.value(), "listing NVMe controllers in " + printable(folder.native()));
  }
  std::vector<Controller> controllers;
  std::map<std::string, Known> seen;
  for (const std::string& name : names) {
    struct stat info {};
    if (!is_controller_name(name) || ::stat((folder / name).c_str(), &info) != 0) continue;
    const auto known = known_.find(name);
    const bool is_same = known != known_.end() && known->second.inode == info.st_ino;
    auto controller =
        is_same ? read_state(folder / name, known->second.controller) : read_controller(folder / name);
    if (!controller) continue;
    // Before it is live for the first time it is being made, and its attributes are not all there yet.
    if (is_same || controller->is_live()) seen[name] = {info.st_ino, *controller};
    if (controller->transport == "tcp") controller->owner = owner_of(root, name);
    controllers.push_back(std::move(*controller));
  }
  known_ = std::move(seen);
  return controllers;
}

std::vector<Controller> controllers_of(const std::vector<Controller>& all, const std::string& subsystem,
                                       const std::string& host_nqn) {
  std::vector<Controller> theirs;
  theirs.reserve(all.size());
  std::copy_if(all.begin(), all.end(), std::back_inserter(theirs), [&](const Controller& controller) {
    return controller.subsystem == subsystem && (host_nqn.empty() || controller.host_nqn == host_nqn);
  });
  return theirs;
}

Result<Controller> connection_to_change(const SystemRoot& root, const std::string& controller,
                                        const std::string& subsystem, const std::string& doing) {
  auto all = list_controllers(root);
  if (!all) return fail_with(all.error(), doing);
  const auto found = std::ranges::find(*all, controller, &Controller::name);
  if (found == all->end() || found->subsystem != subsystem || found->transport != "tcp") {
    return fail(Errc::NotFound, doing + ": it is not a connection to " + printable(subsystem) + " any more",
                "the next one is made as it should be");
  }
  if (is_foreign(*found)) {
    return fail(Errc::Refused, doing + ": it belongs to " + found->owner,
                "its settings are made there; or let spark-stage make the connection");
  }
  return std::move(*found);
}

Result<Namespace> find_namespace(const SystemRoot& root, const std::string& subsystem, std::uint32_t nsid) {
  auto all = list_controllers(root);
  if (!all) return all.take_error();
  return find_namespace(root, *all, subsystem, nsid);
}

Result<Namespace> find_namespace(const SystemRoot& root, const std::vector<Controller>& all,
                                 const std::string& subsystem, std::uint32_t nsid) {
  auto found = search(root, all, subsystem, nsid);
  if (!found) return found.take_error();
  return std::move(found->space);
}

bool NamespaceList::is_still(const Known& known, const std::vector<Controller>& all) const {
  const auto controller = std::ranges::find(all, known.controller, &Controller::name);
  return controller != all.end() && controller->is_live() && known.node_inode != 0 && known.disk_inode != 0 &&
         inode_of(root_ / "sys/class/nvme" / known.controller / known.node) == known.node_inode &&
         inode_of(root_ / "sys/class/block" / known.found.device) == known.disk_inode &&
         std::chrono::steady_clock::now() - known.since < kBelieved;
}

Result<Namespace> NamespaceList::find(const std::vector<Controller>& all, const std::string& subsystem,
                                      std::uint32_t nsid) {
  const auto known = known_.find({subsystem, nsid});
  if (known != known_.end() && is_still(known->second, all)) return known->second.found;
  auto found = search(root_, all, subsystem, nsid);
  if (!found) {
    known_.erase({subsystem, nsid});
    return found.take_error();
  }
  known_[{subsystem, nsid}] = {found->space,
                               found->controller,
                               found->node,
                               inode_of(root_ / "sys/class/nvme" / found->controller / found->node),
                               inode_of(root_ / "sys/class/block" / found->space.device),
                               std::chrono::steady_clock::now()};
  return std::move(found->space);
}

}  // namespace spark::nvmetcp
