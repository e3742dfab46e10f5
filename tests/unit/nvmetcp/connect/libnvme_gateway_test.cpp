#include "nvmetcp/connect/libnvme_gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "nvmetcp/sysfs/registry.hpp"
#include "tests/support/fake_sysfs.hpp"
#include "tests/support/local_port.hpp"
#include "tests/unit/nvmetcp/connect/fake_kernel.hpp"

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

// A controller that holds the configured key, at a target that can be reached.
struct KeyedConnection : LibnvmeGatewayTest {
  KeyedConnection() {
    EXPECT_EQ(::listen(target.fd.get(), 4), 0);
    auto there = test::tcp_controller("nvme1", "s");
    there.portal = target.portal;
    sysfs.add_controller(there);
    sysfs.add_node("nvme1", "nvme0c1n1", 1);
    sysfs.add_head("nvme0n1", 1, "259:1", 2048);
    sysfs.write("key", kKey);
    sysfs.write("sys/class/nvme/nvme1/dhchap_secret", kKey);
    options.host_key_file = sysfs.root() / "key";
    EXPECT_EQ(::chmod(options.host_key_file.c_str(), 0600), 0);
    // What a connect finds: a kernel with the driver, whose answer has no name of a controller.
    sysfs.write("sys/module/nvme_tcp/version", "");
    sysfs.write("dev/nvme-fabrics",
                "nqn=%s,transport=%s,traddr=%s,trsvcid=%s,hostnqn=%s,hostid=%s,nr_io_queues=%d,"
                "keep_alive_tmo=%d,reconnect_delay=%d,ctrl_loss_tmo=%d,dhchap_secret=%s");
  }
  static constexpr char kKey[] = "DHHC-1:01:BwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYDWRHm:";
  Result<Connection> connect() { return gateway.connect("s", target.portal, test::test_host(), options); }
  bool is_connected() const { return sysfs.has("sys/class/nvme/nvme1"); }

  test::LocalPort target;
  ConnectOptions options;
};

// Its worker may have been killed before it could prove that the target asks for the key.
TEST_F(KeyedConnection, WithoutAnOwnerIsReplacedByOneThatIsProven) {
  const FakeKernel kernel(sysfs, "nvme1");
  EXPECT_FALSE(connect()) << "it was taken for proven";
  EXPECT_FALSE(is_connected());
  EXPECT_THAT(sysfs.read("dev/nvme-fabrics"), testing::StartsWith("nqn=s,")) << "no new connection was made";
}

TEST_F(KeyedConnection, OfOursIsTakenOver) {
  ASSERT_TRUE(claim(sysfs.root(), "nvme1"));
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(connection->controller, "nvme1");
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
}

TEST_F(KeyedConnection, WithoutAnOwnerThatIsInUseIsTakenOverWithARemark) {
  sysfs.write("sys/class/block/nvme0n1/holders/dm-0", "");
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
  EXPECT_THAT(connection->differences, testing::Contains(testing::HasSubstr("authenticated is not known")));
}

// Its disk is mounted: without it I/O would wait for a new one, which the target may refuse.
TEST_F(KeyedConnection, WithoutAnOwnerStaysAsLongAsTheOtherPathIsDown) {
  auto other = test::tcp_controller("nvme2", "s");
  other.portal = {"10.0.0.9", 4420};
  other.state = "connecting";
  sysfs.add_controller(other);
  sysfs.add_node("nvme2", "nvme0c2n1", 1);
  sysfs.write("sys/class/block/nvme0n1/holders/dm-0", "");
  ASSERT_TRUE(connect());
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
}

TEST_F(KeyedConnection, WithoutAnOwnerThatTheAdministratorExcludesIsRefusedAndStays) {
  sysfs.write("etc/nvme/exclusions.conf", "[exclusions]\nexclusion = nqn=s\n");
  const auto connection = connect();
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().kind, Errc::Refused);
  EXPECT_EQ(sysfs.read("sys/class/nvme/nvme1/delete_controller"), "");
}

TEST_F(KeyedConnection, WithoutAnOwnerIsTakenOverIfNoKeyIsAskedFor) {
  options.host_key_file.clear();
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(owner_of(sysfs.root(), "nvme1"), kOwner);
}

TEST_F(LibnvmeGatewayTest, DisconnectingAMissingControllerDoesNothing) {
  EXPECT_EQ(gateway.disconnect("nvme7", "s", CutOff{}).value(), Change::AlreadyThere);
}

}  // namespace
}  // namespace spark::nvmetcp
