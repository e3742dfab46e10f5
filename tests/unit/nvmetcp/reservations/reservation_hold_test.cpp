#include "nvmetcp/reservations/reservation_hold.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/sim/reservations.hpp"

namespace spark::nvmetcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReservationHold : public testing::Test {
 protected:
  sim::KeptReservations space;
  sim::SimulatedReservations commands{space, "host-a"}, others{space, "host-b"};
  const LocalRegistrant us{"host-a", 11}, them{"host-b", 22};
};

TEST_F(ReservationHold, AFreeReservationIsAcquiredOnceWithoutFurtherCommands) {
  EXPECT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  space.commands.clear();
  EXPECT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  EXPECT_THAT(space.commands, IsEmpty());
}

TEST_F(ReservationHold, AnotherHostsReservationIsKeptAndItsHolderNamed) {
  ASSERT_EQ(hold_reservation(others, them)->hold, Hold::Ours);
  space.commands.clear();
  const auto now = hold_reservation(commands, us);
  EXPECT_EQ(now->hold, Hold::Theirs);
  EXPECT_EQ(now->holder, "host-b");
  EXPECT_FALSE(now->cloned_id);
  EXPECT_THAT(space.commands, IsEmpty());
}

TEST_F(ReservationHold, ANamespaceWithoutReservationsGetsNoCommand) {
  space.offers = false;
  EXPECT_EQ(hold_reservation(commands, us)->hold, Hold::Unsupported);
  EXPECT_EQ(take_reservation(commands, us)->hold, Hold::Unsupported);
  EXPECT_EQ(*release_reservation(commands, us), Change::AlreadyThere);
  EXPECT_THAT(space.commands, IsEmpty());
}

TEST_F(ReservationHold, IsTakenOverFromAnotherHostOnlyByTake) {
  ASSERT_EQ(hold_reservation(others, them)->hold, Hold::Ours);
  space.commands.clear();
  EXPECT_EQ(take_reservation(commands, us)->hold, Hold::Ours);
  EXPECT_THAT(space.commands, ElementsAre("register", "preempt"));
  EXPECT_EQ(look_at_reservation(others, them)->hold, Hold::Theirs);
}

TEST_F(ReservationHold, IsNotAcquiredAgainByALookAfterARestartOfTheTarget) {
  ASSERT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  space.restart();
  const auto now = keep_reservation(commands, us);
  EXPECT_EQ(now->hold, Hold::Free);
  EXPECT_TRUE(now->restarted);
}

TEST_F(ReservationHold, IsNotAcquiredAgainAfterAnotherHostTookAndReleasedIt) {
  ASSERT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  ASSERT_EQ(take_reservation(others, them)->hold, Hold::Ours);
  ASSERT_EQ(*release_reservation(others, them), Change::Done);
  EXPECT_EQ(keep_reservation(commands, us)->hold, Hold::Free);
  EXPECT_EQ(space.holder(), nullptr);
}

TEST_F(ReservationHold, IsReleasedTogetherWithItsRegistration) {
  ASSERT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  EXPECT_EQ(*release_reservation(commands, us), Change::Done);
  EXPECT_THAT(space.state.registrants, IsEmpty());
  EXPECT_EQ(*release_reservation(commands, us), Change::AlreadyThere);
}

TEST_F(ReservationHold, AMachineWithACopiedHostIdIsDistinguishedByItsKey) {
  const LocalRegistrant twin{"host-a", 33};
  ASSERT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  const auto now = hold_reservation(commands, twin);
  ASSERT_TRUE(now);
  EXPECT_EQ(now->hold, Hold::Theirs);
  EXPECT_TRUE(now->cloned_id);
  EXPECT_EQ(look_at_reservation(commands, us)->hold, Hold::Ours);
}

TEST_F(ReservationHold, TakeReplacesTheKeyOfThisHostIdWhetherItHoldsOrNot) {
  const LocalRegistrant renewed{"host-a", 33};
  ASSERT_EQ(hold_reservation(commands, us)->hold, Hold::Ours);
  space.commands.clear();
  EXPECT_EQ(take_reservation(commands, renewed)->hold, Hold::Ours);
  EXPECT_THAT(space.commands, ElementsAre("replace"));
  const auto before = look_at_reservation(commands, us);
  EXPECT_EQ(before->hold, Hold::Theirs);
  EXPECT_TRUE(before->cloned_id);

  ASSERT_EQ(take_reservation(others, them)->hold, Hold::Ours);
  ASSERT_TRUE(commands.register_key(us.key));
  EXPECT_EQ(hold_reservation(commands, renewed)->hold, Hold::Theirs);
  EXPECT_EQ(take_reservation(commands, renewed)->hold, Hold::Ours);
  EXPECT_EQ(look_at_reservation(others, them)->hold, Hold::Theirs);
}

TEST_F(ReservationHold, TheKeyOfAnEarlierReleaseIsReplacedWithoutReleasingIt) {
  const LocalRegistrant former{"host-a", 10}, upgraded{"host-a", 11, 10};
  for (const auto attempt : {keep_reservation, take_reservation}) {
    space = {};
    ASSERT_EQ(hold_reservation(commands, former)->hold, Hold::Ours);
    space.commands.clear();
    const auto before = look_at_reservation(commands, upgraded);
    EXPECT_EQ(before->hold, Hold::Ours);
    EXPECT_TRUE(before->former_key);
    EXPECT_EQ(hold_reservation(commands, upgraded)->hold, Hold::Ours);
    EXPECT_THAT(space.commands, IsEmpty()) << "a copy's mount is not known to fail yet";
    const auto after = attempt(commands, upgraded);
    EXPECT_EQ(after->hold, Hold::Ours);
    EXPECT_FALSE(after->former_key);
    EXPECT_THAT(space.commands, ElementsAre("replace"));
  }
}

TEST_F(ReservationHold, IsReleasedWithTheRegisteredKey) {
  ASSERT_EQ(hold_reservation(commands, {"host-a", 10})->hold, Hold::Ours);
  EXPECT_EQ(*release_reservation(commands, {"host-a", 11, 10}), Change::Done);
  EXPECT_THAT(space.state.registrants, IsEmpty());
  ASSERT_EQ(hold_reservation(commands, {"host-a", 10})->hold, Hold::Ours);
  EXPECT_EQ(*release_reservation(commands, {"host-a", 33}), Change::AlreadyThere);
  EXPECT_EQ(space.state.registrants.size(), 1u);
}

}  // namespace
}  // namespace spark::nvmetcp
