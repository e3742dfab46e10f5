// Connections that have not shown yet that they have the fleet's key.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;
using spark::fleet::test::FleetHost;

namespace {

TEST(Greetings, ManySilentConnectionsFromOneAddressKeepOutNoOther) {
  const std::string key = new_key().value();
  FleetHost host(key, "nqn.host", 1h);  // so that none of them ends during the test
  const Endpoint at = host.address().endpoints.front();
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  from.sin_addr.s_addr = ::inet_addr("127.0.0.2");
  to.sin_addr.s_addr = ::inet_addr(at.address.c_str());
  to.sin_port = htons(at.port);
  while (!connect_to(at, 10s)) std::this_thread::sleep_for(10ms);  // until its thread listens
  const std::size_t connections = 600, greetings = 32;             // more than it has places for connections
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < connections; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    silent.push_back(std::move(socket));
  }
  while (get_int(host.server().report(), "refused").value() < std::int64_t{connections - greetings})
    std::this_thread::sleep_for(10ms);
  const auto peer = Channel::connect(Security::make(key, "nqn.peer").value(), at, 10s);
  EXPECT_TRUE(peer) << peer.error().message();
}

}  // namespace
