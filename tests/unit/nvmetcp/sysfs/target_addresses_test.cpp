#include "nvmetcp/sysfs/target_addresses.hpp"

#include <gtest/gtest.h>

namespace spark::nvmetcp {
namespace {

TEST(TargetAddresses, AreComparedIndependentlyOfNotation) {
  TargetAddresses rose;
  rose.restrict_to({{"10.0.0.5", 4420}, {"fd00::5", 4420}});
  EXPECT_TRUE(rose.has({"10.0.0.5", 4420}));
  EXPECT_TRUE(rose.has({"fd00:0::5", 4420}));
  EXPECT_FALSE(rose.has({"10.0.0.5", 4421}));
  EXPECT_FALSE(rose.has({"10.0.0.6", 4420}));
}

TEST(TargetAddresses, IncludeTheResolvedAddressesOfAName) {
  TargetAddresses rose;
  rose.restrict_to({{"nas.lan", 4420}});
  EXPECT_FALSE(rose.has({"10.0.0.5", 4420}));
  rose.learn({"10.0.0.5", 4420});
  EXPECT_TRUE(rose.has({"10.0.0.5", 4420}));
}

TEST(TargetAddresses, AreSharedByCopies) {
  TargetAddresses data;
  data.restrict_to({{"nas.lan", 4420}});
  TargetAddresses models = data;
  models.restrict_to({{"nas.lan", 4420}});
  models.learn({"10.0.0.5", 4420});
  EXPECT_TRUE(data.has({"10.0.0.5", 4420}));
}

// A central discovery controller lists the nodes of each subsystem.
TEST(TargetAddresses, OfADiscoveryLogAreOfTheirSubsystemAlone) {
  TargetAddresses rose;
  rose.restrict_to({{"10.0.0.5", 4420}});
  rose.learn({"10.0.0.6", 4420}, "data");
  std::vector<Controller> all(2);
  for (auto& controller : all) {
    controller.transport = "tcp";
    controller.portal = {"10.0.0.6", 4420};
  }
  all[0].subsystem = "data";
  all[1].subsystem = "models";
  ASSERT_EQ(rose.ours(all).size(), 1u);
  EXPECT_EQ(rose.ours(all).front().subsystem, "data");
  EXPECT_EQ(rose.strangers(all).front().subsystem, "models");
}

TEST(TargetAddresses, DistinguishTheControllersOfTwoTargets) {
  std::vector<Controller> all(3);
  for (auto& controller : all) controller.transport = "tcp";
  all[0].portal = {"10.0.0.5", 4420};
  all[1].portal = {"10.0.0.9", 4420};
  all[2].transport = "pcie";
  TargetAddresses rose;
  EXPECT_EQ(rose.ours(all).size(), 2U) << "which target is not said";
  rose.restrict_to({{"10.0.0.5", 4420}});
  ASSERT_EQ(rose.ours(all).size(), 1U);
  EXPECT_EQ(rose.ours(all)[0].portal.address, "10.0.0.5");
  ASSERT_EQ(rose.strangers(all).size(), 1U);
  EXPECT_EQ(rose.strangers(all)[0].portal.address, "10.0.0.9");
}

}  // namespace
}  // namespace spark::nvmetcp
