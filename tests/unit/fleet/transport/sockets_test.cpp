#include "fleet/transport/sockets.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/network/addresses.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

TEST(Sockets, AHostThatConnectsByIPv4HasItsIPv4AddressAlsoWhereIPv6IsListenedOn) {
  const auto listening = listen_on({"::", 0});
  if (!listening) GTEST_SKIP() << listening.error().message();
  sockaddr_in6 at{};
  socklen_t size = sizeof at;
  ASSERT_EQ(::getsockname(listening->get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto client = connect_to({address, ntohs(at.sin6_port)}, 10s);
    if (!client && std::string(address) == "::1") continue;  // a host without IPv6 addresses
    ASSERT_TRUE(client) << client.error().message();
    pollfd poll{listening->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&poll, 1, 10'000), 1);
    const UniqueFd accepted(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_EQ(address_of(accepted.get()), address);
  }
}

}  // namespace
