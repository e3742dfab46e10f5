#include "staging/copy/lanes/fair_wishes.hpp"

#include <gtest/gtest.h>

#include <vector>

using spark::staging::FairWishes;

namespace {

TEST(FairWishes, TakesOneOfEachFileInTurn) {
  FairWishes wishes;
  EXPECT_FALSE(wishes.take());
  for (const std::uint64_t unit : {14U, 12U, 13U, 12U}) wishes.add(1, unit);
  wishes.add(7, 70);
  std::vector<std::uint64_t> taken;
  while (const auto unit = wishes.take()) {
    taken.push_back(unit->second);
    if (unit->second == 14) wishes.add(0, 5);
  }
  EXPECT_EQ(taken, (std::vector<std::uint64_t>{14, 70, 12, 5, 13}));
}

TEST(FairWishes, RemembersAsManyOfAFileAsTheViewDoes) {
  FairWishes wishes;
  for (std::uint64_t unit = 0; unit < 5000; ++unit) wishes.add(1, unit);
  unsigned taken = 0;
  while (wishes.take()) ++taken;
  EXPECT_EQ(taken, 1024U);
}

}  // namespace
