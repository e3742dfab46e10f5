#include "daemon/systemd.hpp"

#include <systemd/sd-daemon.h>

#include "base/text.hpp"

namespace spark {

void SystemdNotifier::ready() {
  sd_notify(0, "READY=1");
}
void SystemdNotifier::reloading() {
  sd_notify(0, "RELOADING=1");
}
void SystemdNotifier::stopping() {
  sd_notify(0, "STOPPING=1");
}
void SystemdNotifier::status(const std::string& line) {
  sd_notify(0, ("STATUS=" + printable(line)).c_str());
}
void SystemdNotifier::watchdog() {
  sd_notify(0, "WATCHDOG=1");
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

}  // namespace spark
