// The part of the contract about other programs, and about notifications from a target: gateway_fabric.hpp.
#include "tests/unit/nvmetcp/connect/gateway_fabric.hpp"

namespace spark::nvmetcp {
namespace {

struct NeighbourContract : GatewayContract {};

TEST_P(NeighbourContract, ADiscoveryWatchPersistsAndListsTheCurrentOffers) {
  const auto offers_it = [&](const Result<DiscoveryLog>& log) {
    return log && std::ranges::any_of(log->entries, [&](const OfferedSubsystem& entry) {
             return entry.nqn == fabric->subsystem;
           });
  };
  const auto watch = fabric->gateway().watch_discovery(fabric->portal, fabric->host, "");
  ASSERT_TRUE(watch) << watch.error().message();
  EXPECT_EQ(watch->change, Change::Done);
  const auto log = fabric->gateway().read_discovery(watch->controller);
  EXPECT_TRUE(offers_it(log)) << (log ? "not offered" : log.error().message());
  const auto again = fabric->gateway().watch_discovery(fabric->portal, fabric->host, "");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->controller, watch->controller);
  EXPECT_EQ(again->change, Change::AlreadyThere);
  EXPECT_EQ(owner_of(fabric->root, watch->controller), kOwner);
  EXPECT_TRUE(offers_it(fabric->gateway().discover(fabric->portal, fabric->host, ""))) << "asked beside it";

  EXPECT_EQ(fabric->gateway().disconnect(watch->controller, kDiscoveryNqn, CutOff{}).value(), Change::Done);
  EXPECT_EQ(fabric->gateway().read_discovery(watch->controller).error().kind, Errc::NotFound);
}

TEST_P(NeighbourContract, AForeignDiscoveryConnectionIsNotMistakenForOurs) {
  const auto watch = fabric->gateway().watch_discovery(fabric->portal, fabric->host, "");
  ASSERT_TRUE(watch) << watch.error().message();
  const auto entry = fabric->root / ("run/nvme/registry/" + watch->controller + "/owner");
  ASSERT_TRUE(write_file_atomically(entry, "stas\n"));
  const auto ours = fabric->gateway().watch_discovery(fabric->portal, fabric->host, "");
  const auto theirs = fabric->gateway().read_discovery(watch->controller);
  ASSERT_TRUE(claim(fabric->root, watch->controller));
  ASSERT_TRUE(ours) << ours.error().message();
  EXPECT_NE(ours->controller, watch->controller);
  EXPECT_EQ(theirs.error().kind, Errc::NotFound);
  for (const std::string& name : {watch->controller, ours->controller})
    EXPECT_TRUE(fabric->gateway().disconnect(name, kDiscoveryNqn, CutOff{}));
}

TEST_P(NeighbourContract, AConnectionIsRegisteredAsOursUntilItIsDisconnected) {
  const auto connection = connect();
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(owner_of(fabric->root, connection->controller), kOwner);
  ASSERT_TRUE(disconnect(connection->controller));
  EXPECT_EQ(owner_of(fabric->root, connection->controller), "");
}

TEST_P(NeighbourContract, AForeignConnectionIsUsedUnchangedAndNotDisconnected) {
  ConnectOptions options;
  options.reconnect_delay = seconds(3);
  const auto connection = connect(options);
  ASSERT_TRUE(connection) << connection.error().message();
  const auto entry = fabric->root / ("run/nvme/registry/" + connection->controller + "/owner");
  ASSERT_TRUE(write_file_atomically(entry, "stas\n"));

  options.reconnect_delay = seconds(4);
  const auto adopted = connect(options);
  const auto delay = attribute(connection->controller, "reconnect_delay");
  const auto gone = disconnect(connection->controller);
  const auto owner = owner_of(fabric->root, connection->controller);
  ASSERT_TRUE(claim(fabric->root, connection->controller));  // so that the cleanup may disconnect it

  ASSERT_TRUE(adopted) << adopted.error().message();
  EXPECT_EQ(adopted->change, Change::AlreadyThere);
  EXPECT_EQ(delay, "3");
  EXPECT_FALSE(adopted->differences.empty());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, Errc::Refused) << gone.error().message();
  EXPECT_EQ(owner, "stas");
}

TEST_P(NeighbourContract, ASubsystemIsRefusedWhileItIsExcluded) {
  const auto list = fabric->root / "etc/nvme/exclusions.conf";
  std::filesystem::create_directories(list.parent_path());
  ASSERT_TRUE(write_file_atomically(list, "[exclusions]\nexclusion = nqn=" + fabric->subsystem + "\n"));
  const auto excluded = connect();
  std::filesystem::remove(list);
  ASSERT_FALSE(excluded);
  EXPECT_EQ(excluded.error().kind, Errc::Refused) << excluded.error().message();
  EXPECT_TRUE(ours().empty());
  EXPECT_TRUE(connect());
}

INSTANTIATE_TEST_SUITE_P(Gateways, NeighbourContract, testing::Values("Fake", "Libnvme"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace spark::nvmetcp
