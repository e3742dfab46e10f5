// The connections part of the contract: gateway_fabric.hpp.
#include "tests/unit/nvmetcp/connect/gateway_fabric.hpp"

namespace spark::nvmetcp {
namespace {

TEST_P(GatewayContract, DiscoveryListsTheOfferedSubsystemsAndLeavesNothingBehind) {
  const auto before = all().size();
  const auto log = fabric->gateway().discover(fabric->portal, fabric->host, "");
  ASSERT_TRUE(log) << log.error().message();
  const auto offered =
      std::find_if(log->entries.begin(), log->entries.end(),
                   [&](const OfferedSubsystem& entry) { return entry.nqn == fabric->subsystem; });
  ASSERT_NE(offered, log->entries.end());
  EXPECT_EQ(offered->kind, SubsystemKind::Io);
  EXPECT_EQ(offered->transport, "tcp");
  EXPECT_EQ(offered->portal, fabric->portal);
  EXPECT_TRUE(log->ignored.empty()) << log->ignored.front();
  EXPECT_EQ(all().size(), before);
}

TEST_P(GatewayContract, AConnectionIsLiveAndItsNamespaceAppears) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(connection->change, Change::Done);
  ASSERT_EQ(ours().size(), 1U);
  EXPECT_EQ(ours()[0].name, connection->controller);
  EXPECT_TRUE(ours()[0].is_live());
  EXPECT_EQ(ours()[0].portal, fabric->portal);
  EXPECT_EQ(ours()[0].host_nqn, fabric->host.nqn);
  const auto found = namespace_that_appears();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_GT(found->bytes, 0U);
  EXPECT_NE(found->device_number, 0U);
  EXPECT_TRUE(fabric->can_be_read(*found)) << found->device;
}

TEST_P(GatewayContract, ConnectingAgainAdopts) {
  const auto first = connect();
  ASSERT_TRUE(first) << first.error().message();
  const auto second = connect();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(second->change, Change::AlreadyThere);
  EXPECT_EQ(second->controller, first->controller);
  EXPECT_TRUE(second->differences.empty());
  EXPECT_EQ(ours().size(), 1U);
}

TEST_P(GatewayContract, TimersAreAppliedOnConnectAndOnAdoption) {
  ConnectOptions options;
  options.reconnect_delay = seconds(3);
  options.controller_loss = seconds(30);
  options.fast_fail = seconds(10);
  const auto connection = connect(options);
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(attribute(connection->controller, "reconnect_delay"), "3");
  EXPECT_EQ(attribute(connection->controller, "ctrl_loss_tmo"), "30");
  EXPECT_EQ(attribute(connection->controller, "fast_io_fail_tmo"), "10");

  ConnectOptions changed;
  changed.keep_alive = seconds(7);
  const auto adopted = connect(changed);
  ASSERT_TRUE(adopted) << adopted.error().message();
  EXPECT_EQ(attribute(connection->controller, "reconnect_delay"), "2");
  EXPECT_EQ(attribute(connection->controller, "ctrl_loss_tmo"), "off");
  EXPECT_EQ(attribute(connection->controller, "fast_io_fail_tmo"), "off");
  EXPECT_EQ(adopted->differences, std::vector<std::string>{"keep_alive is 5, not 7"});
}

TEST_P(GatewayContract, ASecondDisconnectDoesNothing) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  const auto first = disconnect(connection->controller);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(*first, Change::Done);
  EXPECT_TRUE(ours().empty());
  EXPECT_EQ(disconnect(connection->controller).value(), Change::AlreadyThere);
}

TEST_P(GatewayContract, ConnectingRightAfterADisconnectWorks) {
  for (int round = 0; round < 5; ++round) {
    const auto connection = connect();
    ASSERT_TRUE(connection) << round << ": " << connection.error().message();
    EXPECT_EQ(connection->change, Change::Done);
    const auto gone = disconnect(connection->controller);
    ASSERT_TRUE(gone) << round << ": " << gone.error().message();
  }
}

TEST_P(GatewayContract, AnotherSubsystemsControllerIsNotDisconnected) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  const auto refused =
      fabric->gateway().disconnect(connection->controller, "nqn.2026-01.io.spark:not-this", CutOff{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_EQ(ours().size(), 1U);
}

TEST_P(GatewayContract, ADiskInUseKeepsItsLastPathUnlessThatVeryDiskMayBeCutOff) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  const auto found = namespace_that_appears();
  ASSERT_TRUE(found) << found.error().message();
  const auto user = fabric->use(*found);
  const CutOff another{false, {found->device_number + 1}}, it{false, {found->device_number}};
  for (const CutOff& spares_it : {CutOff{}, another}) {
    const auto kept = fabric->gateway().disconnect(connection->controller, fabric->subsystem, spares_it);
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().kind, Errc::Refused) << kept.error().message();
    EXPECT_EQ(ours().size(), 1U);
  }
  EXPECT_EQ(fabric->gateway().disconnect(connection->controller, fabric->subsystem, it).value(),
            Change::Done);
}

TEST_P(GatewayContract, AMissingSubsystemIsNotFound) {
  const auto before = all().size();
  const auto connection =
      fabric->gateway().connect("nqn.2026-01.io.spark:not-this", fabric->portal, fabric->host, {});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().kind, Errc::NotFound) << connection.error().message();
  EXPECT_EQ(all().size(), before);
}

TEST_P(GatewayContract, ASubsystemThatDoesNotAllowThisHostIsDeniedAndNotDiscovered) {
  if (fabric->forbidden.empty()) GTEST_SKIP() << "SPARK_REAL_FORBIDDEN=NQN is not set";
  const auto log = fabric->gateway().discover(fabric->portal, fabric->host, "");
  ASSERT_TRUE(log) << log.error().message();
  for (const OfferedSubsystem& entry : log->entries) EXPECT_NE(entry.nqn, fabric->forbidden);
  const auto connection = fabric->gateway().connect(fabric->forbidden, fabric->portal, fabric->host, {});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().kind, Errc::Denied) << connection.error().message();
}

TEST_P(GatewayContract, APortWithoutAListenerIsUnavailable) {
  const Portal nobody{fabric->portal.address, 1};
  const auto connection = fabric->gateway().connect(fabric->subsystem, nobody, fabric->host, {});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().kind, Errc::Unavailable) << connection.error().message();
  EXPECT_EQ(fabric->gateway().discover(nobody, fabric->host, "").error().kind, Errc::Unavailable);
}

// Linux waits this long for the answer to an admin command (nvme_core.admin_timeout).
constexpr seconds kAdminTimeout(60);

TEST_P(GatewayContract, ASilentTargetIsDisconnectedWithoutWaitingForItsAnswer) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  if (!fabric->cut()) GTEST_SKIP() << "SPARK_REAL_CUT and SPARK_REAL_MEND are not set";
  const auto start = std::chrono::steady_clock::now();
  const auto gone = disconnect(connection->controller);
  const auto took = std::chrono::steady_clock::now() - start;
  const auto unreachable = connect();
  fabric->mend();
  ASSERT_TRUE(gone) << gone.error().message();
  EXPECT_EQ(*gone, Change::Done);
  EXPECT_LT(took, kAdminTimeout) << "it waited for an answer to the shutdown of the controller";
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().kind, Errc::Unavailable) << unreachable.error().message();
}

TEST_P(GatewayContract, AReconnectingConnectionIsNeitherAdoptedNorDuplicated) {
  ASSERT_TRUE(connect());
  if (!fabric->cut()) GTEST_SKIP() << "SPARK_REAL_CUT and SPARK_REAL_MEND are not set";
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (ours().at(0).is_live() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const auto meanwhile = connect();
  const auto state = ours().at(0).state;
  fabric->mend();
  EXPECT_TRUE(state == "connecting" || state == "resetting") << state;
  ASSERT_FALSE(meanwhile);
  EXPECT_EQ(meanwhile.error().kind, Errc::Unavailable) << meanwhile.error().message();
  auto back = connect();
  while (!back && std::chrono::steady_clock::now() < end + seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    back = connect();
  }
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->change, Change::AlreadyThere);
}

TEST_P(GatewayContract, ContradictoryOrMalformedRequestsAreInvalid) {
  ConnectOptions options;
  options.fast_fail = seconds(1);
  options.reconnect_delay = seconds(5);
  EXPECT_EQ(connect(options).error().kind, Errc::Invalid);
  EXPECT_EQ(fabric->gateway().connect("a,b", fabric->portal, fabric->host, {}).error().kind, Errc::Invalid);
  EXPECT_TRUE(ours().empty());
}

INSTANTIATE_TEST_SUITE_P(Gateways, GatewayContract, testing::Values("Fake", "Libnvme"),
                         [](const auto& info) { return std::string(info.param); });

// Tests of the fake's own scripts.
TEST(FakeNvmeGateway, ItsScriptsBehaveLikeAFabric) {
  FakeFabric fabric;
  auto& fake = fabric.fake;
  const auto connect = [&] { return fake.connect(fabric.subsystem, fabric.portal, fabric.host, {}); };
  const auto state = [&] { return list_controllers(fabric.root).value().at(0).state; };

  fake.targets().allow_only(fabric.subsystem, {"nqn.somebody-else"});
  EXPECT_EQ(connect().error().kind, Errc::Denied);
  EXPECT_TRUE(fake.discover(fabric.portal, fabric.host, "").value().entries.empty());
  fake.targets().allow_only(fabric.subsystem, {});
  ASSERT_TRUE(connect());

  fake.vanish(fabric.portal);
  EXPECT_EQ(state(), "connecting");
  EXPECT_EQ(connect().error().kind, Errc::Unavailable);
  fake.come_back(fabric.portal);
  EXPECT_EQ(state(), "live");

  fake.lose_controllers(fabric.portal);
  EXPECT_TRUE(list_controllers(fabric.root).value().empty());
  EXPECT_FALSE(find_namespace(fabric.root, fabric.subsystem, 1));

  fake.set_unsupported_options({"nr_io_queues"});
  EXPECT_EQ(connect().error().kind, Errc::Unsupported);
  fake.set_discovery_service(false);
  EXPECT_EQ(fake.discover(fabric.portal, fabric.host, "").error().kind, Errc::Unsupported);
  EXPECT_EQ(fake.calls().front(), "connect raid5-data 10.0.0.5:4420");
}

}  // namespace
}  // namespace spark::nvmetcp
