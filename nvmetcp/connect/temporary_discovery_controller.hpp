// A temporary discovery controller, for one request. The requesting process may be killed meanwhile, and the
// kernel would keep the connection indefinitely. Each is therefore noted in /run/nvme/spark-stage, with a
// lock that ends with the process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace spark::nvmetcp {

class TemporaryDiscoveryController {
 public:
  // From the moment on in which the kernel has made the controller. Where it can't be noted, it is not.
  TemporaryDiscoveryController(const SystemRoot& root, const std::string& controller);
  ~TemporaryDiscoveryController();  // it has been removed; if not, it is abandoned from now on
  TemporaryDiscoveryController(const TemporaryDiscoveryController&) = delete;
  TemporaryDiscoveryController& operator=(const TemporaryDiscoveryController&) = delete;

 private:
  SystemRoot root_;
  std::filesystem::path note_;
  UniqueFd lock_;
};

// Controllers of processes that are gone: to be removed. Never a later controller of the same name.
std::vector<std::string> abandoned_discovery_controllers(const SystemRoot& root);

}  // namespace spark::nvmetcp
