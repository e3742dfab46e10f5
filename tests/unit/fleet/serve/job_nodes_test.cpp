#include "fleet/serve/job_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;
using testing::ElementsAre;

namespace {

class JobNodesTest : public testing::Test {
 protected:
  std::vector<JobNode> noted_;
  std::vector<std::string> looked_up_;
  std::map<std::string, std::string> addresses_;  // by name
  SteadyTime now_ = std::chrono::steady_clock::now();
  JobNodes nodes_{[this] { return noted_; },
                  [this](const std::string& name) -> Result<std::vector<std::string>> {
                    looked_up_.push_back(name);
                    if (!addresses_.contains(name)) return fail(Errc::Unavailable, "no such name");
                    return std::vector{addresses_[name]};
                  }};

  void look_up_all() {
    while (nodes_.look_up_next(now_)) continue;
  }
};

TEST_F(JobNodesTest, ANodeWhoseAddressTheStagingFoundIsKnownAtOnceWithoutALookUp) {
  noted_ = {{"n1", {"10.0.0.1", "10.0.3.1"}}};
  EXPECT_TRUE(nodes_.has("10.0.3.1"));
  look_up_all();
  EXPECT_THAT(looked_up_, ElementsAre());
}

TEST_F(JobNodesTest, NamesWithoutAnAddressAreLookedUpOnceTheNewestFirst) {
  noted_ = {{"old", {}}, {"new", {}}};
  addresses_ = {{"old", "10.0.0.1"}, {"new", "10.0.0.2"}};
  EXPECT_FALSE(nodes_.has("10.0.0.2"));
  EXPECT_TRUE(nodes_.look_up_next(now_));
  EXPECT_TRUE(nodes_.has("10.0.0.2"));
  EXPECT_FALSE(nodes_.has("10.0.0.1"));
  look_up_all();
  EXPECT_TRUE(nodes_.has("10.0.0.1"));
  EXPECT_THAT(looked_up_, ElementsAre("new", "old"));
}

TEST_F(JobNodesTest, AQuestionWhetherAnAddressIsKnownNeverWaitsForANameService) {
  std::latch is_asked(1), may_answer(1);
  JobNodes nodes(
      [] {
        return std::vector<JobNode>{{"n1", {}}, {"n2", {"10.0.0.2"}}};
      },
      [&](const std::string& /*name*/) -> Result<std::vector<std::string>> {
        is_asked.count_down();
        may_answer.wait();
        return std::vector<std::string>{"10.0.0.1"};
      });
  std::thread looking_up([&] { EXPECT_TRUE(nodes.look_up_next(now_)); });
  is_asked.wait();
  EXPECT_FALSE(nodes.has("10.0.0.1"));
  EXPECT_TRUE(nodes.has("10.0.0.2"));
  may_answer.count_down();
  looking_up.join();
  EXPECT_TRUE(nodes.has("10.0.0.1"));
}

TEST_F(JobNodesTest, ANameThatLedNowhereIsLookedUpAgainAfterAWhileIfAnUnknownAddressAsked) {
  noted_ = {{"n1", {}}};
  look_up_all();
  now_ += 31s;
  look_up_all();
  EXPECT_THAT(looked_up_, ElementsAre("n1")) << "no unknown address asked";
  nodes_.has("10.0.0.9");
  addresses_ = {{"n1", "10.0.0.9"}};
  look_up_all();
  EXPECT_TRUE(nodes_.has("10.0.0.9"));
}

TEST_F(JobNodesTest, ManyUnknownAddressesCauseOneLookUpInAWhile) {
  noted_ = {{"n1", {}}};
  for (int i = 0; i < 100; ++i) {
    nodes_.has("10.0.0.9");
    look_up_all();
  }
  EXPECT_THAT(looked_up_, ElementsAre("n1"));
}

TEST_F(JobNodesTest, AnUnknownAddressEndsTheWaitAlsoIfItAskedBefore) {
  nodes_.has("10.0.0.9");
  nodes_.wait_for_stranger(24h);
  std::thread asking([&] { nodes_.has("10.0.0.9"); });
  nodes_.wait_for_stranger(24h);
  asking.join();
}

}  // namespace
