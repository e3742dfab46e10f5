#include "daemon/workers/verbs/fleet.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::workers;
using Addresses = std::vector<std::string>;

namespace {

FleetMembers members_with(const std::vector<fleet::PeerAddress>& peers) {
  FleetMembers members;
  members.listen = {{"10.99.0.1", 7789}};
  members.peers = peers;
  return members;
}

Result<Addresses> resolve(const std::string& name) {
  if (name == "n2" || name == "two.lan") return Addresses{"10.99.0.2"};
  if (name == "n3") return Addresses{"10.99.1.3", "10.99.0.3"};
  return fail(Errc::Unavailable, "no such name");
}

TEST(AddNodes, TheNodesOfAJobBecomePeersUnlessTheyArePeersAlready) {
  FleetMembers members = members_with({{"two", {{"10.99.0.2", 1}}}, {"n5", {{"10.99.0.5", 1}}}});
  fleet::NameService names(resolve);
  const auto nodes = add_nodes(members, {"n2", "n3", "n4", "n5"}, names);
  EXPECT_EQ(nodes, (fleet::FoundNames{{"n2", {"10.99.0.2"}}, {"n3", {"10.99.0.3", "10.99.1.3"}}}));
  ASSERT_EQ(members.peers.size(), 3u);
  EXPECT_EQ(members.peers[2].name, "n3");
  ASSERT_EQ(members.peers[2].endpoints.size(), 2u);
  EXPECT_EQ(fleet::to_string(members.peers[2].endpoints[0]), "10.99.1.3:7789");
}

TEST(AddNodes, ANameServiceThatDoesNotAnswerLeavesThePeersThatAreKnown) {
  FleetMembers members = members_with({{"two", {{"10.99.0.2", 1}}}});
  const auto may_end = std::make_shared<std::latch>(1);
  fleet::NameService names([may_end](const std::string& /*name*/) -> Result<Addresses> {
    may_end->wait();
    return Addresses{"10.99.0.9"};
  });
  const auto nodes = add_nodes(members, {"n2", "n3"}, names);
  may_end->count_down();  // it returned before
  EXPECT_TRUE(nodes.empty());
  EXPECT_EQ(members.peers.size(), 1u);
}

class PeerNamesTest : public testing::Test {
 protected:
  test::TempFolder boards_;
  std::atomic<unsigned> asked_{0};
  fleet::NameService names_{[this](const std::string& name) {
    ++asked_;
    return resolve(name);
  }};
  FleetMembers members_ = members_with({{"two", {{"two.lan", 1}}}, {"gone", {{"gone.lan", 1}}}});
};

TEST_F(PeerNamesTest, ANodeWhoseAddressAStagingFoundIsAnswered) {
  note_nodes(boards_.path(), {{"n1", {"10.0.0.1", "10.0.3.1"}}});
  note_nodes(boards_.path(), {{"n1", {"10.0.0.1", "10.0.3.1"}}, {"n2", {"10.0.0.2"}}});
  EXPECT_TRUE(is_noted_node(boards_.path(), "10.0.3.1"));
  EXPECT_TRUE(is_noted_node(boards_.path(), "10.0.0.2"));
  EXPECT_FALSE(is_noted_node(boards_.path(), "n2"));
  EXPECT_FALSE(is_noted_node(boards_.path(), "10.0.0.3"));
}

TEST_F(PeerNamesTest, AStagingUsesTheAddressesThatTheServingProcessFoundAndAsksNoNameService) {
  note_peers(boards_.path(), {{"two.lan", {"10.99.0.7", "10.99.1.7"}}, {"gone.lan", {}}},
             {json::object{{"name", "two"}, {"answers", true}}, json::object{{"name", "gone"}}});
  EXPECT_EQ(noted_peers(boards_.path()).silent, std::set<std::string>{"gone"});
  use_addresses(members_, addresses_of(members_, names_, kResolving, noted_peers(boards_.path()).found));
  EXPECT_EQ(asked_, 0u);
  ASSERT_EQ(members_.peers[0].endpoints.size(), 2u);
  EXPECT_EQ(fleet::to_string(members_.peers[0].endpoints[1]), "10.99.1.7:1");
  EXPECT_TRUE(members_.peers[1].endpoints.empty());
}

TEST_F(PeerNamesTest, NamesThatNobodyFoundYetAreLookedUpOnceForAllPeers) {
  use_addresses(members_, addresses_of(members_, names_, kResolving, noted_peers(boards_.path()).found));
  EXPECT_EQ(asked_, 2u);
  ASSERT_EQ(members_.peers[0].endpoints.size(), 1u);
  EXPECT_EQ(fleet::to_string(members_.peers[0].endpoints[0]), "10.99.0.2:1");
}

TEST(UseAddresses, AnEntryOfThisHostIsLeftOutWhateverItListensOn) {
  for (const char* listen : {"0.0.0.0", "127.0.0.1", "::"}) {
    FleetMembers members = members_with({{"self", {{"127.0.0.1", 7789}}}, {"other", {{"127.0.0.1", 7790}}}});
    members.listen = {{listen, 7789}};
    fleet::NameService names(resolve);
    use_addresses(members, addresses_of(members, names, kResolving));
    ASSERT_EQ(members.peers.size(), 1u) << listen;
    EXPECT_EQ(members.peers[0].name, "other");
  }
}

// In /etc/hosts of Debian and Ubuntu. No interface has that address.
TEST(UseAddresses, AHostsOwnNameLeadsToItself) {
  FleetMembers members = members_with({{"self", {{"self.lan", 7789}}}, {"other", {{"127.0.1.1", 7789}}}});
  fleet::NameService names([](const std::string&) { return Addresses{"127.0.1.1"}; });
  use_addresses(members, addresses_of(members, names, kResolving));
  ASSERT_EQ(members.peers.size(), 1u);
  EXPECT_EQ(members.peers[0].name, "other") << "as written, another program at this address";
}

}  // namespace
