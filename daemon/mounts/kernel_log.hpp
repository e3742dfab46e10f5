// The kernel's messages about a device, to be quoted in errors.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace spark::mounts {

// Covers messages since its construction; none if the kernel log can't be read.
class KernelLog {
 public:
  KernelLog();
  // The first such messages about mounting `device` ("nvme3n1") as `type`, as one line.
  std::string about(std::string_view device, std::string_view type) const;

 private:
  UniqueFd fd_;
};

}  // namespace spark::mounts
