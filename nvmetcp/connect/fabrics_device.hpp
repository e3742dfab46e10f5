// /dev/nvme-fabrics. Everything here waits for a lock of the kernel's that a connect holds as long as it
// lasts, and can't be interrupted then: workers only.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/connect/fabrics_options.hpp"

namespace spark::nvmetcp {

// Makes sure that /dev/nvme-fabrics and the tcp transport are there. `loader` is the command that loads the
// module ({"modprobe", "nvme-tcp"}), run only if they are not. Unsupported: this kernel has no such module.
Result<> load_transport(const SystemRoot& root, const std::vector<std::string>& loader);

// The next step for the host's owner where `kernel`, the running one, has no module nvme-tcp. Distributions
// differ: Ubuntu has it in a package of its own, Debian in each kernel's; and an upgrade may have removed the
// running kernel's modules.
std::string how_to_get_driver(const SystemRoot& root, const std::string& kernel);

// Every option is in the kernel's own list. Kernels before 5.17 have no list; they refuse the connect itself.
Result<> check_supported(const SystemRoot& root, const FabricsOptions& asked);

struct RefusedConnect {
  int number = 0;                       // errno
  std::vector<std::string> kernel_log;  // the kernel's messages meanwhile
};

struct MadeController {
  std::string name;                     // "nvme3", live
  std::vector<std::string> kernel_log;  // the kernel's messages meanwhile
};

tl::expected<MadeController, RefusedConnect> create_controller(const SystemRoot& root,
                                                               const FabricsOptions& options);

}  // namespace spark::nvmetcp
