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
  void ready() { tell("READY=1"); }
  void reloading() { tell("RELOADING=1"); }  // followed by ready() when done
  void stopping() { tell("STOPPING=1"); }
  void watchdog() { tell("WATCHDOG=1"); }
  void status(const std::string& line);
  // Keeps the descriptor through a restart of this process: the next one gets it from kept_descriptors().
  virtual void keep(const std::string& name, int descriptor) = 0;
  virtual void forget(const std::string& name) = 0;

 private:
  virtual void tell(const std::string& state) = 0;  // as sd_notify(3) takes it
};

// Does nothing if the process was not started by systemd.
class SystemdNotifier final : public Notifier {
 public:
  void keep(const std::string& name, int descriptor) override;
  void forget(const std::string& name) override;

 private:
  void tell(const std::string& state) override;
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
