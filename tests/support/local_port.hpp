// A TCP port of this machine that accepts or refuses connections.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <stdexcept>

#include "base/file.hpp"
#include "nvmetcp/types.hpp"

namespace spark::test {

// A socket on a free port of 127.0.0.1. The port refuses connections until the test calls listen() on fd.
struct LocalPort {
  LocalPort() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      throw std::runtime_error("no free port on the loopback");
    }
    portal = {"127.0.0.1", ntohs(address.sin_port)};
  }
  UniqueFd fd;
  nvmetcp::Portal portal;
};

}  // namespace spark::test
