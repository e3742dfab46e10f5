// A tree of the /sys and /etc files that the nvmetcp code reads, in its own folder.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "base/file.hpp"
#include "nvmetcp/types.hpp"

namespace spark::test {

class FakeSysfs {
 public:
  FakeSysfs() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spark-sysfs-XXXXXX").native();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~FakeSysfs() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;

  SystemRoot root() const { return {path_}; }

  void write(const std::string& file, const std::string& content) {
    const auto whole = path_ / file;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << content << '\n';
  }
  std::string read(const std::string& file) const { return read_line_file(path_ / file).value_or(""); }
  bool has(const std::string& file) const { return std::filesystem::exists(path_ / file); }
  void remove(const std::string& file) { std::filesystem::remove_all(path_ / file); }

  static std::string controller_folder(const std::string& name) { return "sys/class/nvme/" + name; }

  void add_controller(const nvmetcp::Controller& controller) {
    const std::string folder = controller_folder(controller.name) + "/";
    write(folder + "state", controller.state);
    write(folder + "transport", controller.transport);
    write(folder + "subsysnqn", controller.subsystem);
    write(folder + "delete_controller", "");
    if (controller.transport != "tcp") {
      write(folder + "address", "0000:01:00.0");
      return;
    }
    write(folder + "hostnqn", controller.host_nqn);
    write(folder + "hostid", controller.host_id);
    std::string address =
        "traddr=" + controller.portal.address + ",trsvcid=" + std::to_string(controller.portal.port);
    if (!controller.interface.empty()) address += ",host_iface=" + controller.interface;
    write(folder + "address", address);
  }

  // The block device of a namespace: a multipath head, or the only node without multipath.
  void add_head(const std::string& device, std::uint32_t nsid, const std::string& dev,
                std::uint64_t sectors) {
    const std::string folder = "sys/class/block/" + device + "/";
    write(folder + "nsid", std::to_string(nsid));
    write(folder + "dev", dev);
    write(folder + "size", std::to_string(sectors));
    std::filesystem::create_directories(path_ / (folder + "holders"));
  }

  // The entry below a controller: the hidden path "nvme1c2n1", or "nvme1n1" itself.
  void add_node(const std::string& controller, const std::string& node, std::uint32_t nsid) {
    write(controller_folder(controller) + "/" + node + "/nsid", std::to_string(nsid));
  }

 private:
  std::filesystem::path path_;
};

// A TCP connection with default settings for these tests; change the relevant ones.
inline nvmetcp::Controller tcp_controller(const std::string& name, const std::string& subsystem,
                                          const std::string& state = "live") {
  nvmetcp::Controller controller;
  controller.name = name;
  controller.subsystem = subsystem;
  controller.transport = "tcp";
  controller.state = state;
  controller.portal = {"10.0.0.5", 4420};
  controller.host_nqn = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
  controller.host_id = "11111111-2222-3333-4444-555555555555";
  return controller;
}

inline nvmetcp::HostIdentity test_host() {
  const auto controller = tcp_controller("", "");
  return {controller.host_nqn, controller.host_id};
}

}  // namespace spark::test
