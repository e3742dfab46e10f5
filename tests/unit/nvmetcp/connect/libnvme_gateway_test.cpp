#include "nvmetcp/connect/libnvme_gateway.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

// Port 1 of the loopback: no program listens there.
const Portal kNobody{"127.0.0.1", 1};

struct LibnvmeGatewayTest : testing::Test {
  test::FakeSysfs sysfs;
  LibnvmeGateway gateway{sysfs.root()};
};

TEST(LibnvmeVersion, TheLoadedLibraryIsTheOneBuiltFor) {
  const auto same = check_libnvme_version();
  EXPECT_TRUE(same) << same.error().message();
}

TEST_F(LibnvmeGatewayTest, AnUnreachableTargetIsUnavailableAndNamed) {
  const auto log = gateway.discover(kNobody, test::test_host(), "");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().kind, Errc::Unavailable);
  EXPECT_NE(log.error().what.find("127.0.0.1:1"), std::string::npos);
  EXPECT_EQ(gateway.connect("s", kNobody, test::test_host(), {}).error().kind, Errc::Unavailable);
}

TEST_F(LibnvmeGatewayTest, InvalidRequestsAreRefusedBeforeAnythingIsTouched) {
  ConnectOptions bad;
  bad.reconnect_delay = std::chrono::seconds(0);
  EXPECT_EQ(gateway.connect("s", kNobody, test::test_host(), bad).error().kind, Errc::Invalid);
  EXPECT_EQ(gateway.connect("s,tls", kNobody, test::test_host(), {}).error().kind, Errc::Invalid);
  EXPECT_EQ(gateway.discover({"", 4420}, test::test_host(), "").error().kind, Errc::Invalid);
}

TEST_F(LibnvmeGatewayTest, AnAdoptedConnectionGetsTheTimersAndKeepsTheRest) {
  auto there = test::tcp_controller("nvme4", "s");
  there.portal = kNobody;
  sysfs.add_controller(there);
  const std::string folder = "sys/class/nvme/nvme4/";
  sysfs.write(folder + "reconnect_delay", "9");
  sysfs.write(folder + "kato", "30");
  const auto connection = gateway.connect("s", kNobody, test::test_host(), {});
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(connection->controller, "nvme4");
  EXPECT_EQ(connection->change, Change::AlreadyThere);
  EXPECT_EQ(connection->differences, std::vector<std::string>{"keep_alive is 30, not 5"});
  EXPECT_TRUE(sysfs.read(folder + "reconnect_delay").starts_with("2"));
}

TEST_F(LibnvmeGatewayTest, AHostIdThatConflictsWithALiveConnectionIsInvalid) {
  auto stranger = test::tcp_controller("nvme4", "other");
  stranger.host_id = "99999999-2222-3333-4444-555555555555";
  sysfs.add_controller(stranger);
  const auto connection = gateway.connect("s", kNobody, test::test_host(), {});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().kind, Errc::Invalid);
}

TEST_F(LibnvmeGatewayTest, DisconnectingAMissingControllerDoesNothing) {
  EXPECT_EQ(gateway.disconnect("nvme7", "s", CutOff{}).value(), Change::AlreadyThere);
}

}  // namespace
}  // namespace spark::nvmetcp
