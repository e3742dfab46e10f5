// Periods in which a volume was not usable, with the reason and the healer: kept through restarts of the
// daemon.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class Outages {
 public:
  explicit Outages(VolumeContext& volume) : volume_(volume) {}

  // For a volume that was ready before; no effect while an outage lasts.
  void begin(const std::string& reason);
  // It is ready: healed by the kernel or by the daemon.
  void end();
  // An operator takes it down: it ends without a healer.
  void end_unhealed();

 private:
  void remember();
  asio::awaitable<void> save(std::shared_ptr<void> volume);

  VolumeContext& volume_;
  bool is_unsaved_ = false, is_saving_ = false;
};

}  // namespace spark::volumes
