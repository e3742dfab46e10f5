// The order of units that readers wait for.
#include <gtest/gtest.h>

#include "fleet/schedule/schedule.hpp"
#include "tests/unit/fleet/schedule/units.hpp"

using namespace spark;
using namespace spark::fleet;
using namespace spark::fleet::test;
using namespace std::chrono_literals;

namespace {

// A schedule with one peer that stages the set.
class WantedScheduleTest : public testing::Test {
 protected:
  Schedule schedule_{kSelf, 1, 4};

  void begin(SetState peer) {
    schedule_.heard(0, std::move(peer), kNow);
    schedule_.add(all_units());
  }
  static std::uint64_t of_peer() {
    std::uint64_t unit = kUnits - 1;
    while (owner_of(unit, std::array{kSelf, kFirst}) != kFirst) --unit;
    return unit;
  }
  static WantedUnit part(std::uint64_t unit, std::uint64_t end) { return {0, unit, end, true}; }
};

TEST_F(WantedScheduleTest, AUnitOfAPeerIsReadFromTheSourceNow) {
  for (const From first : {From::Source, From::Balanced, From::Peers, From::Wanted}) {
    schedule_ = Schedule(kSelf, 1, 4);
    begin(staging_of(kFirst));
    schedule_.want(part(of_peer(), kUnits));
    const auto choice = schedule_.next(first, kNow);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->unit, of_peer());
    EXPECT_FALSE(choice->peer);
    EXPECT_EQ(choice->why, Why::Wanted);
    EXPECT_FALSE(schedule_.is_still_mine(*choice, kNow));
  }
}

TEST_F(WantedScheduleTest, APeerThatReadsItIsNotWaitedFor) {
  begin(staging_of(kFirst, UnitState::Reading));
  EXPECT_FALSE(schedule_.next(From::Source, kNow));
  schedule_.want(part(7, 8));
  EXPECT_EQ(schedule_.next(From::Source, kNow)->why, Why::Wanted);
  EXPECT_FALSE(schedule_.next(From::Source, kNow)) << "the others are";
}

TEST_F(WantedScheduleTest, APeerThatHasItSendsItFirst) {
  begin(staging_of(kFirst, UnitState::HasPiece));
  schedule_.want(part(50, 51));
  for (int i = 0; i < 2; ++i) {
    const auto choice = schedule_.next(From::Source, kNow);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->peer, 0U);
    EXPECT_EQ(choice->unit == 50, i == 0);
  }
}

TEST_F(WantedScheduleTest, APeerThatVouchesForTheWholeFileAloneDoesNotHelp) {
  begin(published_by(kFirst));
  schedule_.want(part(50, 51));
  EXPECT_FALSE(schedule_.next(From::Peers, kNow)->peer);
  schedule_.want({0, 40, 41, false});  // all of its file
  EXPECT_EQ(schedule_.next(From::Peers, kNow)->peer, 0U);
}

TEST_F(WantedScheduleTest, ABusyPeerIsNotWaitedFor) {
  begin(staging_of(kFirst, UnitState::HasPiece));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(schedule_.next(From::Peers, kNow)->peer, 0U);
  EXPECT_FALSE(schedule_.next(From::Peers, kNow));
  for (std::uint64_t unit = 0; unit < kUnits; ++unit) schedule_.want(part(unit, unit + 1));
  EXPECT_FALSE(schedule_.next(From::Wanted, kNow)->peer);
}

TEST_F(WantedScheduleTest, TheRestOfTheFileComesNext) {
  begin({});  // its peer stages nothing
  schedule_.want(part(20, 25));
  for (std::uint64_t unit = 20; unit < 25; ++unit) EXPECT_EQ(schedule_.next(From::Source, kNow)->unit, unit);
  schedule_.want(part(30, 33));
  EXPECT_EQ(schedule_.next(From::Source, kNow)->why, Why::Wanted);
  EXPECT_EQ(schedule_.next(From::Source, kNow)->why, Why::Owner) << "no reader waits for these";
}

TEST_F(WantedScheduleTest, AUnitThatIsAddedLaterIsNextThen) {
  schedule_.want(part(5, 7));
  EXPECT_FALSE(schedule_.next(From::Wanted, kNow));
  begin({});
  EXPECT_EQ(schedule_.next(From::Wanted, kNow)->unit, 5U);
  EXPECT_FALSE(schedule_.next(From::Wanted, kNow));
  EXPECT_EQ(schedule_.next(From::Source, kNow)->unit, 6U);
}

TEST_F(WantedScheduleTest, AUnitThatCouldNotBeSentIsNextAgainUntilItIsDone) {
  begin(staging_of(kFirst, UnitState::HasPiece));
  schedule_.want(part(50, 51));
  const auto choice = schedule_.next(From::Wanted, kNow);
  ASSERT_TRUE(choice && choice->peer);
  schedule_.failed(*choice, false, kNow);
  const auto again = schedule_.next(From::Wanted, kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unit, 50U);
  EXPECT_FALSE(again->peer) << "the peer rests";
  schedule_.done(*again, kNow);
  schedule_.add(std::vector<std::uint64_t>{50});
  EXPECT_FALSE(schedule_.next(From::Wanted, kNow));
}

TEST_F(WantedScheduleTest, AUnitIsWantedUntilItIsDone) {
  begin({});
  const auto choice = schedule_.next(From::Source, kNow);
  ASSERT_TRUE(choice);
  EXPECT_FALSE(schedule_.is_wanted(choice->unit));
  schedule_.want(part(choice->unit, choice->unit + 1));
  EXPECT_TRUE(schedule_.is_wanted(choice->unit)) << "under way";
  schedule_.done(*choice, kNow);
  EXPECT_FALSE(schedule_.is_wanted(choice->unit));
}

// As one that a peer sent, and that has to be proven.
TEST_F(WantedScheduleTest, AUnitThatIsGotAgainStaysWantedWhenItsFirstReadEnds) {
  begin({});
  const auto choice = schedule_.next(From::Source, kNow);
  ASSERT_TRUE(choice);
  schedule_.add(std::span(&choice->unit, 1));
  schedule_.want(part(choice->unit, choice->unit + 1));
  schedule_.done(*choice, kNow);
  const auto again = schedule_.next(From::Wanted, kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unit, choice->unit);
}

TEST_F(WantedScheduleTest, TheFirstOfManyIsNotForgottenAndWhatIsUnderWayMakesRoom) {
  std::vector<std::uint64_t> many(200);
  std::iota(many.begin(), many.end(), 0);
  schedule_.heard(0, {}, kNow);
  schedule_.add(many);
  for (const std::uint64_t unit : many) schedule_.want(part(unit, unit + 1));
  EXPECT_EQ(schedule_.next(From::Wanted, kNow)->unit, 0U);
  std::size_t more = 1;
  for (std::optional<Choice> choice; (choice = schedule_.next(From::Wanted, kNow)); ++more) continue;
  EXPECT_LT(more, many.size());
  schedule_.want(part(199, 200));
  EXPECT_EQ(schedule_.next(From::Wanted, kNow)->unit, 199U);
}

TEST_F(WantedScheduleTest, WithoutASourceAPeerIsWaitedFor) {
  begin(staging_of(kFirst));
  schedule_.reads_as(SetState::Reads::Never, kNow);
  schedule_.want(part(50, 51));
  EXPECT_FALSE(schedule_.next(From::Wanted, kNow));
  schedule_.heard(0, staging_of(kFirst, UnitState::HasPiece), kNow);
  EXPECT_EQ(schedule_.next(From::Wanted, kNow)->peer, 0U);
}

}  // namespace
