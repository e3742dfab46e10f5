#include "daemon/mounts/kernel_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace spark::mounts {
namespace {

constexpr int kMostMessages = 3;

// A record is "priority,number,time,flags;message\n" and lines of details.
std::string_view message_of(std::string_view record) {
  const std::size_t start = record.find(';');
  if (start == std::string_view::npos) return {};
  const std::string_view message = record.substr(start + 1);
  return message.substr(0, message.find('\n'));
}

// "EXT4-fs (nvme3n1): …", "EXT4-fs warning (device nvme3n1): …", or, before a device is known, "ext4: Unknown
// …"
bool is_about(std::string_view message, std::string_view device, std::string_view type) {
  const std::string closed = std::string(device) + ")";
  return message.find("(" + closed) != std::string_view::npos ||
         message.find("(device " + closed) != std::string_view::npos ||
         message.starts_with(std::string(type) + ": ");
}

}  // namespace

KernelLog::KernelLog() : fd_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_) ::lseek(fd_.get(), 0, SEEK_END);
}

std::string KernelLog::about(std::string_view device, std::string_view type) const {
  std::string all;
  char record[8192];
  for (int messages = 0; fd_ && messages < kMostMessages;) {
    const ssize_t got = ::read(fd_.get(), record, sizeof record);
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: older records were overwritten
    if (got <= 0) break;
    const std::string_view message = message_of({record, static_cast<std::size_t>(got)});
    if (!is_about(message, device, type)) continue;
    all += (all.empty() ? "" : "; ") + printable(trim(message));
    ++messages;
  }
  return all;
}

}  // namespace spark::mounts
