#include "daemon/workers/verbs/fleet.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

using namespace spark;
using namespace spark::workers;
using Addresses = std::vector<std::string>;

namespace {

FleetMembers members_with(const std::vector<fleet::PeerAddress>& peers) {
  FleetMembers members;
  members.listen = {"10.99.0.1", 7789};
  members.peers = peers;
  return members;
}

Result<Addresses> resolve(const std::string& name) {
  if (name.starts_with("10.")) return Addresses{name};
  if (name == "n2" || name == "two.lan") return Addresses{"10.99.0.2"};
  if (name == "n3") return Addresses{"10.99.1.3", "10.99.0.3"};
  return fail(Errc::Unavailable, "no such name");
}

TEST(AddNodes, TheNodesOfAJobBecomePeersUnlessTheyArePeersAlready) {
  FleetMembers members = members_with({{"two", {{"two.lan", 1}}}, {"n5", {{"10.99.0.5", 1}}}});
  const auto nodes = add_nodes(members, {"n2", "n3", "n4", "n5"}, resolve);
  EXPECT_EQ(nodes, (std::vector<fleet::JobNode>{
                       {"n2", {"10.99.0.2"}}, {"n3", {"10.99.0.3", "10.99.1.3"}}, {"n4", {}}, {"n5", {}}}));
  ASSERT_EQ(members.peers.size(), 3u);
  EXPECT_EQ(members.peers[2].name, "n3");
  ASSERT_EQ(members.peers[2].endpoints.size(), 2u);
  EXPECT_EQ(fleet::to_string(members.peers[2].endpoints[0]), "10.99.1.3:7789");
}

TEST(AddNodes, WithoutNodesNoNameIsLookedUp) {
  FleetMembers members = members_with({{"two", {{"two.lan", 1}}}});
  std::atomic<unsigned> asked{0};
  const auto nodes = add_nodes(members, {}, [&](const std::string& name) {
    ++asked;
    return resolve(name);
  });
  EXPECT_TRUE(nodes.empty());
  EXPECT_EQ(asked, 0u);
}

TEST(AddNodes, ANameServiceThatDoesNotAnswerLeavesThePeersThatAreKnown) {
  FleetMembers members = members_with({{"two", {{"two.lan", 1}}}});
  const auto may_end = std::make_shared<std::latch>(1);
  const auto nodes =
      add_nodes(members, {"n2", "n3"}, [may_end](const std::string& /*name*/) -> Result<Addresses> {
        may_end->wait();
        return Addresses{"10.99.0.9"};
      });
  may_end->count_down();  // it returned before
  EXPECT_EQ(nodes, (std::vector<fleet::JobNode>{{"n2", {}}, {"n3", {}}}));
  EXPECT_EQ(members.peers.size(), 1u);
}

}  // namespace
