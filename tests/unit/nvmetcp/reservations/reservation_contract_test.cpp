// The contract of ReservationCommands, tested with the fake and with a real target: see gateway_fabric.hpp.
// For a target without reservations, only their absence is tested.
#include <gtest/gtest.h>

#include <thread>

#include "daemon/sim/reservations.hpp"
#include "nvmetcp/reservations/libnvme_reservations.hpp"
#include "tests/unit/nvmetcp/connect/gateway_fabric.hpp"

namespace spark::nvmetcp {
namespace {

class ReservationContract : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "Fake") {
      commands = std::make_unique<sim::SimulatedReservations>(space, host_id);
      return;
    }
    auto real = real_fabric();
    if (!real && real.error().kind == Errc::NotFound) GTEST_SKIP() << real.error().message();
    ASSERT_TRUE(real) << real.error().message();
    fabric = std::move(*real);
    host_id = fabric->host.id;
    const auto connection = fabric->gateway().connect(fabric->subsystem, fabric->portal, fabric->host, {});
    ASSERT_TRUE(connection) << connection.error().message();
    controller = connection->controller;
    auto opened = open_device();
    for (int i = 0; !opened && i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      opened = open_device();
    }
    ASSERT_TRUE(opened) << opened.error().message();
    commands = std::make_unique<LibnvmeReservations>(std::move(*opened));
  }
  void TearDown() override {
    commands.reset();
    if (!fabric || controller.empty()) return;
    EXPECT_TRUE(fabric->gateway().disconnect(controller, fabric->subsystem, CutOff{}));
  }

  // The device's node appears after the namespace.
  Result<LibnvmeReservations> open_device() {
    const auto found = find_namespace(fabric->root, fabric->subsystem, 1);
    if (!found) return found.take_error();
    return LibnvmeReservations::open("/dev/" + found->device, 1);
  }

  bool is_offered() {
    const auto report = commands->report();
    EXPECT_TRUE(report) << report.error().message();
    return report && report->has_value();
  }
  // For this host ID; 0: none.
  std::uint64_t registered() {
    const auto report = commands->report();
    EXPECT_TRUE(report) << report.error().message();
    for (const Registrant& one : (*report)->registrants) {
      if (one.host_id == host_id) return one.key;
    }
    return 0;
  }

  sim::KeptReservations space;
  std::string host_id = "11111111-2222-3333-4444-555555555555", controller;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<ReservationCommands> commands;
};

TEST_P(ReservationContract, OnlyReplaceChangesAKeyOfThisHostIdAndKeepsTheReservation) {
  if (!is_offered()) return;
  ASSERT_TRUE(commands->register_key(11));
  ASSERT_TRUE(commands->acquire(11));
  EXPECT_EQ(commands->register_key(22).error().kind, Errc::Refused);
  EXPECT_EQ(commands->acquire(22).error().kind, Errc::Refused);
  EXPECT_EQ(commands->unregister_key(22).error().kind, Errc::Refused);
  EXPECT_EQ(registered(), 11u);
  ASSERT_TRUE(commands->replace_key(22));
  EXPECT_EQ(registered(), 22u);
  EXPECT_EQ(look_at_reservation(*commands, {host_id, 22})->hold, Hold::Ours);
  EXPECT_EQ(*release_reservation(*commands, {host_id, 22}), Change::Done);
  EXPECT_EQ(registered(), 0u);
}

TEST_P(ReservationContract, TakeAcquiresTheReservationFromAnotherKeyOfThisHostId) {
  if (!is_offered()) return;
  ASSERT_EQ(hold_reservation(*commands, {host_id, 11})->hold, Hold::Ours);
  EXPECT_EQ(hold_reservation(*commands, {host_id, 22})->hold, Hold::Theirs);
  EXPECT_EQ(take_reservation(*commands, {host_id, 22})->hold, Hold::Ours);
  EXPECT_EQ(*release_reservation(*commands, {host_id, 22}), Change::Done);
}

TEST_P(ReservationContract, TheFormerKeyIsReplacedWithoutLosingTheReservation) {
  if (!is_offered()) return;
  ASSERT_EQ(hold_reservation(*commands, {host_id, 10})->hold, Hold::Ours);
  const auto now = keep_reservation(*commands, {host_id, 11, 10});
  EXPECT_EQ(now->hold, Hold::Ours);
  EXPECT_FALSE(now->former_key);
  EXPECT_EQ(*release_reservation(*commands, {host_id, 11, 10}), Change::Done);
}

INSTANTIATE_TEST_SUITE_P(Fake, ReservationContract, testing::Values("Fake"),
                         [](const auto&) { return "Fake"; });
INSTANTIATE_TEST_SUITE_P(Real, ReservationContract, testing::Values("Libnvme"),
                         [](const auto&) { return "Libnvme"; });

}  // namespace
}  // namespace spark::nvmetcp
