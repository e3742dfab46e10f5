#include "nvmetcp/rescan.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "nvmetcp/registry.hpp"
#include "nvmetcp/sysfs.hpp"

namespace spark::nvmetcp {

Result<> rescan_namespaces(const SystemRoot& root, const std::string& controller,
                           const std::string& subsystem) {
  const std::string doing = "looking for the namespaces of " + printable(controller);
  const auto all = list_controllers(root);
  if (!all) return fail_with(all.error(), doing);
  const auto found = std::ranges::find(*all, controller, &Controller::name);
  if (found == all->end() || found->subsystem != subsystem)
    return fail(Errc::NotFound, doing + ": it is not a connection to " + printable(subsystem) + " any more");
  if (is_anothers(*found)) return fail(Errc::Refused, doing + ": it belongs to " + found->owner);
  const auto file = root / "sys/class/nvme" / controller / "rescan_controller";
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), "1", 1) != 1) return fail_errno(errno, doing);
  return {};
}

}  // namespace spark::nvmetcp
