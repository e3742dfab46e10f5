#include "daemon/systemd.hpp"

#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include <cstdlib>

#include "base/child.hpp"
#include "base/text.hpp"

namespace spark {

void Notifier::status(const std::string& line) {
  tell("STATUS=" + printable(line));
}

void SystemdNotifier::tell(const std::string& state) {
  sd_notify(0, state.c_str());
}
void SystemdNotifier::keep(const std::string& name, int descriptor) {
  sd_pid_notify_with_fds(0, 0, ("FDSTORE=1\nFDNAME=" + name).c_str(), &descriptor, 1);
}
void SystemdNotifier::forget(const std::string& name) {
  tell("FDSTOREREMOVE=1\nFDNAME=" + name);
}

std::map<std::string, UniqueFd> kept_descriptors() {
  std::map<std::string, UniqueFd> kept;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    kept[names[i]] = UniqueFd(SD_LISTEN_FDS_START + i);
    std::free(names[i]);
  }
  if (count > 0) std::free(names);
  return kept;
}

bool send_to_journal(const std::vector<std::string>& lines) {
  if (std::getenv("JOURNAL_STREAM") == nullptr) return false;
  std::vector<iovec> parts;
  for (const std::string& line : lines) parts.push_back({const_cast<char*>(line.data()), line.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

bool is_machine_stopping() {
  // It may be slow while it stops everything. Without an answer the volumes would stay, and a dead target
  // would hold up the shutdown.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto asked = run_child({"systemctl", "is-system-running"}, std::chrono::seconds(5));
    const bool has_answered = asked && !asked->out.empty() && !asked->out.starts_with("unknown");
    if (has_answered) return asked->out.starts_with("stopping");
  }
  return false;
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

}  // namespace spark
