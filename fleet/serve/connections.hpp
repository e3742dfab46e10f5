// The open connections of a server, each with its own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "base/shares.hpp"

namespace spark::fleet {

// Used by one thread.
class Connections {
 public:
  // `serve` runs in each connection's thread, and must not throw.
  // The clients of `shares` are addresses.
  Connections(Shares<std::string> shares, std::function<void(UniqueFd)> serve)
      : shares_(std::move(shares)), serve_(std::move(serve)) {}
  // Shuts them down, and waits for their threads.
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // False if the client has its share, or if the system allows no more files or threads.
  bool open(UniqueFd socket, const std::string& client);
  // Shuts all down, and waits so long for their threads. False: some still run.
  bool end(std::chrono::milliseconds patience);
  void join_ended();

 private:
  struct Connection {
    std::string client;
    UniqueFd socket;  // a second descriptor of the thread's socket
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  Shares<std::string> shares_;
  std::function<void(UniqueFd)> serve_;
  std::list<Connection> connections_;
};

}  // namespace spark::fleet
