#include "nvmetcp/sysfs/adoption.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using test::tcp_controller;
using test::test_host;

const std::vector<Portal> kPortals = {{"10.0.0.5", 4420}, {"10.0.0.6", 4420}};

Result<std::optional<Controller>> find(const std::vector<Controller>& all,
                                       const std::string& interface = "") {
  return find_adoptable(all, "s", kPortals, test_host(), interface);
}

TEST(Adoption, ALiveControllerOfSubsystemPortalAndHostIsAdopted) {
  EXPECT_EQ(find({tcp_controller("nvme1", "other"), tcp_controller("nvme2", "s")}).value()->name, "nvme2");
}

TEST(Adoption, AnyAddressOfTheNameMatches) {
  Controller second = tcp_controller("nvme2", "s");
  second.portal.address = "10.0.0.6";
  EXPECT_EQ(find({second}).value()->name, "nvme2");
}

TEST(Adoption, AControllerThatDiffersInOnePropertyIsNotAdopted) {
  std::vector<Controller> all(5, tcp_controller("nvme2", "s"));
  all[0].portal.address = "10.0.0.7";
  all[1].portal.port = 4421;
  all[2].host_nqn = "nqn.other";
  all[3].transport = "rdma";
  all[4].subsystem = "S";
  EXPECT_FALSE(find(all).value());
}

TEST(Adoption, AConnectionThroughAnotherInterfaceIsNotAdopted) {
  Controller controller = tcp_controller("nvme2", "s");
  EXPECT_FALSE(find({controller}, "eth7").value());
  controller.interface = "eth7";
  EXPECT_TRUE(find({controller}, "eth7").value());
  EXPECT_TRUE(find({controller}).value());
}

TEST(Adoption, AControllerThatIsNotLiveIsNeitherAdoptedNorDuplicated) {
  for (const char* state : {"connecting", "resetting", "deleting", "deleting (no IO)", "dead", "new"}) {
    const auto found = find({tcp_controller("nvme2", "s", state)});
    ASSERT_FALSE(found) << state;
    EXPECT_EQ(found.error().kind, Errc::Unavailable);
    EXPECT_NE(found.error().what.find(state), std::string::npos) << found.error().what;
  }
}

TEST(Adoption, ALiveControllerIsAdoptedBesideADeletingOne) {
  EXPECT_EQ(find({tcp_controller("nvme2", "s", "deleting"), tcp_controller("nvme3", "s")}).value()->name,
            "nvme3");
}

TEST(Adoption, AHostNqnWithTwoHostIdsIsInvalidBeforeTheConnect) {
  Controller stranger = tcp_controller("nvme2", "other");
  EXPECT_TRUE(check_host_conflict({stranger}, test_host()));
  stranger.host_id = "99999999-2222-3333-4444-555555555555";
  EXPECT_EQ(check_host_conflict({stranger}, test_host()).error().kind, Errc::Invalid);
  stranger.host_nqn = "nqn.other";
  EXPECT_TRUE(check_host_conflict({stranger}, test_host()));
  stranger.host_id = test_host().id;
  EXPECT_EQ(check_host_conflict({stranger}, test_host()).error().kind, Errc::Invalid);
}

}  // namespace
}  // namespace spark::nvmetcp
