// The kernel's own words about a device, for an error's sentence.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace spark::mounts {

// From its making on; a kernel log that can't be read gives no words.
class KernelLog {
 public:
  KernelLog();
  // The first messages since then about mounting `device` ("nvme3n1") as `type`, as one line.
  std::string about(std::string_view device, std::string_view type) const;

 private:
  UniqueFd fd_;
};

}  // namespace spark::mounts
