#include "nvmetcp/resolve.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/local_port.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::milliseconds;
using test::LocalPort;

TEST(Resolve, ANumericAddressResolvesToItself) {
  EXPECT_EQ(resolve({"10.0.0.5", 4420}).value(), std::vector{(Portal{"10.0.0.5", 4420})});
  EXPECT_EQ(resolve({"fd00:0::5", 4421}).value(), std::vector{(Portal{"fd00::5", 4421})});
}

TEST(Resolve, ANameResolvesToEachAddressOnce) {
  const auto found = resolve({"localhost", 4420}).value();
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.size(), 2U);
  EXPECT_TRUE(found[0].address == "127.0.0.1" || found[0].address == "::1");
}

TEST(Resolve, AnUnknownNameIsUnavailable) {
  const auto found = resolve({"no-such-host.invalid", 4420});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Errc::Unavailable);
  EXPECT_NE(found.error().what.find("no-such-host.invalid"), std::string::npos);
}

TEST(Resolve, AddressesAreComparedAsNumbers) {
  EXPECT_TRUE(same_address("10.0.0.5", "10.0.0.5"));
  EXPECT_TRUE(same_address("fd00::5", "fd00:0:0::0005"));
  EXPECT_TRUE(same_address("fe80::1%eth0", "fe80::1"));
  EXPECT_FALSE(same_address("10.0.0.5", "10.0.0.6"));
  EXPECT_FALSE(same_address("10.0.0.5", "::ffff:10.0.0.5"));
  EXPECT_FALSE(same_address("", "10.0.0.5"));
}

// Each link may have its own machine of that address.
TEST(Resolve, LinkLocalAddressesOfTwoInterfacesDiffer) {
  EXPECT_FALSE(same_address("fe80::1%lo", "fe80::1%2"));
  EXPECT_FALSE(same_address("fe80::1%3", "fe80::1%2"));
  EXPECT_TRUE(same_address("fe80::1%lo", "fe80:0::1%lo"));
  EXPECT_TRUE(same_address("fe80::1%renamed-since", "fe80::1%lo"));
  EXPECT_TRUE(same_address("fe80::1%lo", "fe80::1%1")) << "the number of the loopback interface";
}

TEST(Resolve, APortalIsPrintedWithBracketsAroundIpv6) {
  EXPECT_EQ(to_string(Portal{"10.0.0.5", 4420}), "10.0.0.5:4420");
  EXPECT_EQ(to_string(Portal{"fd00::5", 4420}), "[fd00::5]:4420");
}

TEST(Reach, AListeningPortIsReached) {
  const LocalPort local;
  ASSERT_EQ(::listen(local.fd.get(), 4), 0);
  EXPECT_TRUE(reach(local.portal, "", milliseconds(2000)));
}

TEST(Reach, TellsThePacketSizeThatBothEndsAgreedUpon) {
  const LocalPort local;
  ASSERT_EQ(::listen(local.fd.get(), 4), 0);
  const auto packet = negotiated_packet(local.portal, "", milliseconds(2000));
  ASSERT_TRUE(packet) << packet.error().message();
  EXPECT_GT(*packet, 1400u);
  EXPECT_LE(*packet, 65'536u);  // lo's MTU
  EXPECT_FALSE(negotiated_packet({"127.0.0.1", 1}, "", milliseconds(500)));
}

TEST(Reach, ARefusedConnectionIsUnavailableAtOnce) {
  const LocalPort local;
  const auto reached = reach(local.portal, "", milliseconds(2000));
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().kind, Errc::Unavailable);
  EXPECT_NE(reached.error().what.find("connection refused"), std::string::npos);
}

// A full backlog drops further SYNs, as a firewall would.
TEST(Reach, ASilentPortTimesOut) {
  const LocalPort local;
  ASSERT_EQ(::listen(local.fd.get(), 0), 0);
  std::vector<UniqueFd> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(local.portal.port);
    ::connect(fillers.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto reached = reach(local.portal, "", milliseconds(300));
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(reached);
  EXPECT_NE(reached.error().what.find("no answer"), std::string::npos) << reached.error().what;
  EXPECT_GE(took, milliseconds(290));
}

TEST(Reach, AnInterfaceThatDoesNotExistIsNamed) {
  const auto reached = reach({"127.0.0.1", 4420}, "nosuchif0", milliseconds(500));
  ASSERT_FALSE(reached);
  EXPECT_NE(reached.error().what.find("nosuchif0"), std::string::npos);
}

}  // namespace
}  // namespace spark::nvmetcp
