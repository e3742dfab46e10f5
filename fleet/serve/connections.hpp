// The open connections of a server, each with its own thread.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <thread>

#include "base/file.hpp"

namespace spark::fleet {

// Used by one thread.
class Connections {
 public:
  // `serve` runs in each connection's thread, and must not throw.
  Connections(std::size_t most, std::function<void(UniqueFd)> serve)
      : most_(most), serve_(std::move(serve)) {}
  // Shuts them down, and waits for their threads.
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // False if `most` are open, or if the system allows no more files or threads.
  bool open(UniqueFd socket);
  void join_ended();

 private:
  struct Connection {
    UniqueFd socket;  // a second descriptor of the thread's socket
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  std::size_t most_;
  std::function<void(UniqueFd)> serve_;
  std::list<Connection> connections_;
};

}  // namespace spark::fleet
