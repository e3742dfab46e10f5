// doctor's findings about the other hosts of a fleet.
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetCheck : public Doctor {
 protected:
  FleetCheck() { fake.config.fleet.listen = {nvmetcp::Portal{"10.0.0.1", 7789}}; }

  void answer(const std::string& peer, const std::string& reason = "null") {
    fake.status = R"({"version": "1.0", "fleet": {"listen": "10.0.0.1:7789", "serving": true, "reason": )" +
                  reason + R"(, "interface": "eth0", "link_bytes_per_second": 25000000000, "peers": [)" +
                  peer + "]}}";
  }
};

TEST_F(FleetCheck, IsContentWithPeersLikeThisHost) {
  answer(
      R"({"name": "spark2", "answers": true, "address": "10.0.0.2:7789", "version": "1.0", "interface": "eth0",
             "link_bytes_per_second": 25000000000, "reason": null})");
  EXPECT_THAT(found("fleet"), IsEmpty());
  EXPECT_THAT(examine(fake.host()).fine, Contains(HasSubstr("1 peers answer")));
}

TEST_F(FleetCheck, NamesAPeerThatDoesNotAnswer) {
  answer(R"({"name": "spark2", "answers": false, "reason": "connecting to 10.0.0.2:7789: timed out"})");
  expect("fleet",
         {"peer spark2 does not answer: connecting to 10.0.0.2:7789: timed out", "read from the volume"});
}

TEST_F(FleetCheck, NamesAPeerOfAnotherVersion) {
  answer(R"({"name": "spark2", "answers": true, "version": "2.0", "reason": null})");
  expect("fleet", {"peer spark2 has version 2.0, this host has 1.0"});
}

TEST_F(FleetCheck, NamesAPeerOnASlowerNetwork) {
  answer(R"({"name": "spark2", "answers": true, "version": "1.0", "interface": "eno1",
             "link_bytes_per_second": 1250000000, "reason": null})");
  expect("fleet", {"spark2 is reached on eno1 with 1.25 GB/s, this host has 25.0 GB/s"});
}

TEST_F(FleetCheck, SaysWhyPeersAreNotServed) {
  answer("", "\"the port is in use\"");
  expect("fleet", {"peers are not served: the port is in use"});
}

TEST_F(FleetCheck, ClaimsNothingWithoutTheDaemon) {
  fake.status.clear();
  EXPECT_THAT(found("fleet"), IsEmpty());
  EXPECT_THAT(examine(fake.host()).unknown, Contains(HasSubstr("fleet: no answer")));
}

}  // namespace
}  // namespace spark::doctor
