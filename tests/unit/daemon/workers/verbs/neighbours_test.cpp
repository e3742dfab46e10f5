#include "daemon/workers/verbs/neighbours.hpp"

#include <gtest/gtest.h>

#include <map>

#include "fleet/transport/key.hpp"

using namespace spark;
using namespace spark::workers;
using Addresses = std::vector<std::string>;

namespace {

// A name service that a test changes while it is asked.
class NeighboursTest : public testing::Test {
 protected:
  std::map<std::string, Addresses> names_{{"127.0.0.2", {"10.99.0.2"}}, {"127.0.0.3", {"10.99.0.3"}}};

  FleetMembers members() const {
    FleetMembers members;
    members.security = fleet::Security::make(fleet::new_key().value(), "nqn.host").value();
    // Nothing listens there, so each peer refuses the connection at once.
    members.peers = {{"two", {{"127.0.0.2", 1}}}, {"three", {{"127.0.0.3", 1}}}};
    return members;
  }
  Result<Addresses> resolve(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) return fail(Errc::Unavailable, "the name service does not answer");
    return found->second;
  }
};

TEST_F(NeighboursTest, APeerWhoseNameIsNotFoundLaterStaysAPeerAtItsLastAddresses) {
  Neighbours neighbours(members(), [this](const std::string& name) { return resolve(name); });
  EXPECT_TRUE(neighbours.has("10.99.0.2"));
  EXPECT_FALSE(neighbours.has("10.99.0.4"));
  names_.erase("127.0.0.2");
  names_["127.0.0.3"] = {"10.99.0.4"};
  neighbours.ask();
  EXPECT_TRUE(neighbours.has("10.99.0.2"));
  EXPECT_TRUE(neighbours.has("10.99.0.4"));
  EXPECT_FALSE(neighbours.has("10.99.0.3")) << "its name has another address now";
}

TEST_F(NeighboursTest, AHostThatTheFleetsNameNoLongerHasIsNoPeer) {
  FleetMembers with_dns = members();
  with_dns.dns = fleet::Endpoint{"sparks.lan", 1};
  names_["sparks.lan"] = {"127.0.0.4"};
  names_["127.0.0.4"] = {"127.0.0.4"};
  Neighbours neighbours(with_dns, [this](const std::string& name) { return resolve(name); });
  EXPECT_TRUE(neighbours.has("127.0.0.4"));
  names_["sparks.lan"] = {};
  neighbours.ask();
  EXPECT_FALSE(neighbours.has("127.0.0.4"));
  EXPECT_TRUE(neighbours.has("10.99.0.2"));
}

}  // namespace
