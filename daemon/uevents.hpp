// The kernel's events about NVMe controllers and disks, received from udev. Correctness does not depend on
// them: they only trigger periodic checks earlier.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace spark {

struct Uevent {
  std::string device;  // "nvme3", or "nvme3n1" for a disk
  std::string action;  // "add", "change", "remove", …
  std::string event;   // NVME_EVENT: "connected", "rediscover"; usually empty
  std::string aen;     // NVME_AEN: the controller's notification, "0x70f002" for a changed discovery log
  bool is_disk = false;
};

class Uevents {
 public:
  Uevents(boost::asio::any_io_executor executor, std::function<void(const Uevent&)> heard);
  ~Uevents();

  // Unsupported: there is no udev on this host.
  Result<> start();
  void stop();

 private:
  struct Monitor;
  static boost::asio::awaitable<void> listen(std::shared_ptr<Monitor> monitor);

  boost::asio::any_io_executor executor_;
  std::function<void(const Uevent&)> heard_;
  std::shared_ptr<Monitor> monitor_;
};

}  // namespace spark
