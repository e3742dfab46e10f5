#include "fleet/protocol/owner.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

using namespace spark::fleet;

namespace {

std::vector<NodeId> nodes(int number) {
  std::vector<NodeId> all;
  for (int i = 0; i < number; ++i) all.push_back(node_id("nqn." + std::to_string(i), "10.0.0.1:7789"));
  return all;
}

TEST(Owner, EveryHostOwnsAboutAsMuchAsTheOthers) {
  const auto all = nodes(20);
  std::map<NodeId, int> owned;
  for (std::uint64_t unit = 0; unit < 20'000; ++unit) ++owned[owner_of(unit, all)];
  ASSERT_EQ(owned.size(), 20U);
  for (const auto& [node, units] : owned) EXPECT_NEAR(units, 1000, 200);
}

TEST(Owner, OnlyTheUnitsOfALeavingHostChangeOwners) {
  const auto all = nodes(5);
  const std::vector<NodeId> rest(all.begin() + 1, all.end());
  for (std::uint64_t unit = 0; unit < 1000; ++unit) {
    const NodeId before = owner_of(unit, all);
    if (before != all[0]) {
      EXPECT_EQ(owner_of(unit, rest), before);
    }
  }
}

TEST(Owner, TheNextInHashOrderTakesOver) {
  const auto all = nodes(5);
  for (std::uint64_t unit = 0; unit < 100; ++unit) {
    std::vector<NodeId> rest = all;
    std::erase(rest, owner_of(unit, all));
    EXPECT_EQ(rank_of(owner_of(unit, rest), unit, all), 1U);
  }
}

TEST(Owner, ClonedHostsAreDistinguishedByTheirAddresses) {
  EXPECT_NE(node_id("nqn.a", "10.0.0.1:7789"), node_id("nqn.a", "10.0.0.2:7789"));
}

}  // namespace
