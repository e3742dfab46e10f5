// When a volume was not usable, why, and who healed it: kept through restarts of the daemon.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class Outages {
 public:
  explicit Outages(VolumeContext& volume) : volume_(volume) {}

  // Of a volume that was ready before; nothing happens while one goes on.
  void begin(const std::string& reason);
  // It is ready: by the kernel or by us.
  void end();
  // An operator takes it down: nobody heals it.
  void end_unhealed();

 private:
  void remember();
  asio::awaitable<void> save(std::shared_ptr<void> volume);

  VolumeContext& volume_;
  bool is_unsaved_ = false, is_saving_ = false;
};

}  // namespace spark::volumes
