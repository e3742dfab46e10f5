#include "daemon/systemd.hpp"

#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include <cstdlib>

#include "base/child.hpp"
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

bool send_to_journal(const std::vector<std::string>& lines) {
  if (std::getenv("JOURNAL_STREAM") == nullptr) return false;
  std::vector<iovec> parts;
  for (const std::string& line : lines) parts.push_back({const_cast<char*>(line.data()), line.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

bool is_machine_stopping() {
  const auto asked = run_child({"systemctl", "is-system-running"}, std::chrono::seconds(5));
  return asked && asked->out.starts_with("stopping");
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

}  // namespace spark
