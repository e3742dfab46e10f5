#include "nvmetcp/sysfs/rescan.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::nvmetcp {

Result<> rescan_namespaces(const SystemRoot& root, const std::string& controller,
                           const std::string& subsystem) {
  const std::string doing = "looking for the namespaces of " + printable(controller);
  const auto found = connection_to_change(root, controller, subsystem, doing);
  if (!found) return found.take_error();
  const auto file = root / "sys/class/nvme" / controller / "rescan_controller";
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), "1", 1) != 1) return fail_errno(errno, doing);
  return {};
}

}  // namespace spark::nvmetcp
