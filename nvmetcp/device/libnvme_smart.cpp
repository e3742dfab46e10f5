#include <fcntl.h>
#include <libnvme.h>

#include <cerrno>
#include <cstring>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/device/smart.hpp"

namespace spark::nvmetcp {

static_assert(sizeof(nvme_smart_log) == kSmartLogBytes);

Result<Smart> read_smart(const std::string& controller) {
  const std::string name = printable(controller);
  const UniqueFd fd(::open(("/dev/" + controller).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, "opening /dev/" + name);
  nvme_smart_log log{};
  errno = 0;
  const int status = nvme_get_log_smart(fd.get(), NVME_NSID_ALL, false, &log);
  if (status == 0)
    return decode_smart(
        std::span(reinterpret_cast<const std::byte*>(&log), kSmartLogBytes).first<kSmartLogBytes>());
  const std::string doing = "reading the SMART log of " + name + ": ";
  if (status > 0) return fail(Errc::Unsupported, doing + nvme_status_to_string(status, false));
  return fail(Errc::Unavailable, doing + std::strerror(errno), "the target stopped answering");
}

}  // namespace spark::nvmetcp
