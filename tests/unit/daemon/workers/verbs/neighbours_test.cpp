#include "daemon/workers/verbs/neighbours.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <map>

#include "fleet/transport/key.hpp"

using namespace spark;
using namespace spark::workers;
using Addresses = std::vector<std::string>;

namespace {

// A name service that a test changes while it is asked.
class NeighboursTest : public testing::Test {
 protected:
  std::map<std::string, Addresses> names_{{"two.lan", {"127.0.0.2"}}, {"three.lan", {"127.0.0.3"}}};
  fleet::NameService service_{[this](const std::string& name) { return resolve(name); }};

  FleetMembers members() const {
    FleetMembers members;
    members.security = fleet::Security::make(fleet::new_key().value(), "nqn.host").value();
    // Nothing listens there, so each peer refuses the connection at once.
    members.peers = {{"two", {{"two.lan", 1}}}, {"three", {{"three.lan", 1}}}};
    return members;
  }
  Result<Addresses> resolve(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) return fail(Errc::Unavailable, "the name service does not answer");
    return found->second;
  }
};

TEST_F(NeighboursTest, APeerWhoseNameIsNotFoundLaterStaysAPeerAtItsLastAddresses) {
  Neighbours neighbours(members(), service_);
  neighbours.ask();
  EXPECT_TRUE(neighbours.has("127.0.0.2"));
  EXPECT_FALSE(neighbours.has("127.0.0.4"));
  names_.erase("two.lan");
  names_["three.lan"] = {"127.0.0.4"};
  neighbours.ask();
  EXPECT_TRUE(neighbours.has("127.0.0.2"));
  EXPECT_TRUE(neighbours.has("127.0.0.4"));
  EXPECT_FALSE(neighbours.has("127.0.0.3")) << "its name has another address now";
}

TEST_F(NeighboursTest, AHostThatTheFleetsNameNoLongerHasIsNoPeer) {
  FleetMembers with_dns = members();
  with_dns.dns = fleet::Endpoint{"sparks.lan", 1};
  names_["sparks.lan"] = {"127.0.0.4"};
  Neighbours neighbours(with_dns, service_);
  neighbours.ask();
  EXPECT_TRUE(neighbours.has("127.0.0.4"));
  names_["sparks.lan"] = {};
  neighbours.ask();
  EXPECT_FALSE(neighbours.has("127.0.0.4"));
  EXPECT_TRUE(neighbours.has("127.0.0.2"));
}

TEST_F(NeighboursTest, PeersWithAddressesAreKnownAtOnceAndANameServiceThatIsAwayIsNotWaitedFor) {
  FleetMembers mixed = members();
  mixed.peers[1].endpoints[0].address = "127.0.0.3";
  const auto may_end = std::make_shared<std::latch>(1);
  fleet::NameService away([may_end](const std::string&) -> Result<Addresses> {
    may_end->wait();
    return Addresses{};
  });
  Neighbours neighbours(mixed, away);
  EXPECT_TRUE(neighbours.has("127.0.0.3"));
  const json::array answers = neighbours.ask();
  may_end->count_down();  // ask() ended before
  EXPECT_NE(answers[0].at("reason").as_string().find("no address of peer two was found"), std::string::npos);
}

// A peer may send any list, and any member of the group may have the daemon compare it.
TEST(ComparedRows, AreFewAndHaveOnlyWhatIsCompared) {
  json::array sent{"no row"};
  for (int i = 0; i < 9; ++i)
    sent.push_back(json::object{{"name", "set-" + std::to_string(i)},
                                {"hash", i == 1 ? json::value(std::string(1'000, 'h')) : json::value("a1")},
                                {"bytes", 5},
                                {"other", std::string(1'000, 'x')}});
  const json::array rows = compared_rows(sent, 4);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(json::serialize(rows[0]), R"({"name":"set-0","hash":"a1","bytes":5})");
  EXPECT_EQ(json::serialize(rows[1]), R"({"name":"set-1","bytes":5})");
}

}  // namespace
