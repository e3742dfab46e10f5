// What the kernel tells of NVMe controllers and disks, by way of udev. Nothing depends on hearing all of it:
// it only makes what is looked at anyway be looked at sooner.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace spark {

struct Uevent {
  std::string device;  // "nvme3"; of a disk "nvme3n1"
  std::string action;  // "add", "change", "remove", …
  std::string event;   // NVME_EVENT: "connected", "rediscover"; mostly empty
  std::string aen;     // NVME_AEN: what the controller told, "0x70f002" for a changed discovery log
  bool is_disk = false;
};

class Uevents {
 public:
  Uevents(boost::asio::any_io_executor executor, std::function<void(const Uevent&)> heard);
  ~Uevents();

  // Unsupported: there is no udev here to tell.
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
