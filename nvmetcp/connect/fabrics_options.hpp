// The options of one connection as /dev/nvme-fabrics takes them, and the check that they are supported.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/security/keys.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct FabricsOption {
  std::string name;
  std::string value;  // empty: a flag
};
using FabricsOptions = std::vector<FabricsOption>;

// `numeric` comes from resolve(). Every timer and the number of queues are given, so that no default of the
// kernel's decides. Without `keys` only the names of the options are right, which is enough for
// check_supported().
FabricsOptions io_controller_options(const std::string& subsystem, const Portal& numeric,
                                     const HostIdentity& host, const ConnectOptions& options,
                                     unsigned online_cpus, const Keys& keys = {});

enum class DiscoveryUse {
  Once,   // it lives as long as one look at the log, and reconnects to nothing
  Watch,  // a permanent one that receives changes: the kernel reconnects it indefinitely
};
FabricsOptions discovery_controller_options(const Portal& numeric, const HostIdentity& host,
                                            const std::string& interface,
                                            DiscoveryUse use = DiscoveryUse::Once);

// "nqn=…,transport=tcp,…": for the kernel alone, it may hold keys.
std::string to_string(const FabricsOptions& options);

// Unsupported: names every option missing from the kernel's list (the content of /dev/nvme-fabrics).
Result<> check_supported(const FabricsOptions& asked, const std::string& kernel_list,
                         const std::string& kernel_release);

}  // namespace spark::nvmetcp
