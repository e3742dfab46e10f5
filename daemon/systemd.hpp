// Notifications to the service manager and its journal. Only this code uses libsystemd.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace spark {

class Notifier {
 public:
  virtual ~Notifier() = default;
  virtual void ready() = 0;
  virtual void reloading() = 0;  // followed by ready() when done
  virtual void stopping() = 0;
  virtual void status(const std::string& line) = 0;
  virtual void watchdog() = 0;
  // Keeps the descriptor through a restart of this process: the next one gets it from kept_descriptors().
  virtual void keep(const std::string& name, int descriptor) = 0;
  virtual void forget(const std::string& name) = 0;
};

// Does nothing if the process was not started by systemd.
class SystemdNotifier final : public Notifier {
 public:
  void ready() override;
  void reloading() override;
  void stopping() override;
  void status(const std::string& line) override;
  void watchdog() override;
  void keep(const std::string& name, int descriptor) override;
  void forget(const std::string& name) override;
};

// Those that this process was started with, by name. Call once.
std::map<std::string, UniqueFd> kept_descriptors();

// Writes a separate entry of "FIELD=value" lines (systemd.journal-fields(7)). False if the process was not
// started with the journal as its log.
bool send_to_journal(const std::vector<std::string>& lines);

// The machine is shutting down: `systemctl is-system-running` prints "stopping".
bool is_machine_stopping();

// How often systemd expects watchdog(): half of WatchdogSec. None: no watchdog is set.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace spark
