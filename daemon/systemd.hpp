// What the service manager is told (sd_notify). The only code that sees libsystemd.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace spark {

class Notifier {
 public:
  virtual ~Notifier() = default;
  virtual void ready() = 0;
  virtual void reloading() = 0;  // followed by ready() when done
  virtual void stopping() = 0;
  virtual void status(const std::string& line) = 0;
  virtual void watchdog() = 0;
};

// Does nothing when not started by systemd.
class SystemdNotifier final : public Notifier {
 public:
  void ready() override;
  void reloading() override;
  void stopping() override;
  void status(const std::string& line) override;
  void watchdog() override;
};

// How often systemd wants to hear watchdog(): half of WatchdogSec. None: no watchdog is set.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace spark
