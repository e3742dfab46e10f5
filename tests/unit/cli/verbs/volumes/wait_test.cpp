#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

std::string status(const std::string& state, const std::string& reason = "", bool is_in_progress = false) {
  const json::value next = is_in_progress ? json::value(nullptr) : json::value("2026-11-20T16:21:26Z");
  return json::serialize(json::object{
      {"volumes", json::array{json::object{
                      {"name", "datasets"}, {"state", state}, {"reason", reason}, {"next_attempt", next}}}}});
}

class Wait : public ::testing::Test {
 protected:
  void then(const std::string& answer) { program.client.answer("GET /v1/volumes/datasets", 200, answer); }
  Program program;
};

TEST_F(Wait, EndsWhenTheVolumeIsReady) {
  then(status("waiting", "no answer from 10.0.0.5:4420"));
  then(status("waiting", "no answer from 10.0.0.5:4420"));
  then(status("mounting"));
  then(status("ready"));
  EXPECT_EQ(program.run({"wait", "datasets"}), 0);
  EXPECT_EQ(program.errors(),
            "datasets: waiting - no answer from 10.0.0.5:4420\ndatasets: mounting\ndatasets: ready\n");
}

TEST_F(Wait, EndsImmediatelyIfARefusedVolumeIsNotRetried) {
  then(status("refused", "another filesystem UUID than pinned"));
  EXPECT_EQ(program.run({"wait", "datasets", "--timeout", "5m"}), 7);
  EXPECT_EQ(program.errors(), "spark-stage: datasets: refused - another filesystem UUID than pinned\n");
}

TEST_F(Wait, ContinuesWhileARefusedVolumeIsRetried) {
  then(status("refused", "no file system", true));
  then(status("ready"));
  EXPECT_EQ(program.run({"wait", "datasets", "--timeout", "5m"}), 0);
}

TEST_F(Wait, ForAnUnknownVolumeEndsWithTheDaemonsAnswer) {
  program.client.answer(
      "GET /v1/volumes/datasts", 404,
      R"({"error": {"kind": "not_found", "what": "no volume datasts", "hint": "did you mean datasets?"}})");
  EXPECT_EQ(program.run({"wait", "datasts"}), 3);
  EXPECT_EQ(program.errors(), "spark-stage: no volume datasts - did you mean datasets?\n");
}

TEST_F(Wait, AsksForTheNamedVolumesAloneEachSecond) {
  program.client.answer("GET /v1/volumes/a%2Cb", 200,
                        R"({"volumes": [{"name": "a", "state": "ready"}, {"name": "b", "state": "ready"}]})");
  EXPECT_EQ(program.run({"wait", "a", "b"}), 0);
  for (const std::string& request : program.client.sent)
    EXPECT_EQ(request.find("GET /v1/volumes/a%2Cb"), 0U) << request;
}

// The daemon closes a connection whose request line is too long.
TEST_F(Wait, AsksForManyVolumesInSeveralRequests) {
  std::vector<std::string> asked{"wait"};
  for (const auto& [first, last] : {std::pair{0, 64}, std::pair{64, 70}}) {
    std::string path;
    json::array volumes;
    for (int i = first; i < last; ++i) {
      asked.push_back("v" + std::to_string(i));
      path += (path.empty() ? "" : "%2C") + asked.back();
      volumes.push_back({{"name", asked.back()}, {"state", "ready"}});
    }
    program.client.answer("GET /v1/volumes/" + path, 200,
                          json::serialize(json::object{{"volumes", volumes}}));
  }
  EXPECT_EQ(program.run(asked), 0) << program.errors();
}

TEST_F(Wait, AnEmptyNameIsNoVolume) {
  EXPECT_EQ(program.run({"wait", ""}), 3);
  EXPECT_NE(program.errors().find("there is no volume ''"), std::string::npos) << program.errors();
}

TEST_F(Wait, TimesOutWith124) {
  then(status("waiting", "no answer"));
  EXPECT_EQ(program.run({"wait", "datasets", "--timeout", "90s"}), 124);
  EXPECT_EQ(program.client.sent.size(), 91u);
  EXPECT_NE(program.errors().find("not ready after 1 min 30 s: datasets"), std::string::npos)
      << program.errors();
}

TEST_F(Wait, WaitsForADaemonThatHasNotStartedYet) {
  for (int i = 0; i < 3; ++i) {
    program.client.fail_once("GET /v1/volumes/datasets",
                             {Errc::Unavailable, "there is no such socket", "start it"});
  }
  then(status("ready"));
  EXPECT_EQ(program.run({"wait", "datasets", "--timeout", "1m"}), 0);
  EXPECT_EQ(program.errors(), "spark-stage: there is no such socket - still trying\ndatasets: ready\n");
}

TEST_F(Wait, DoesNotWaitForPermission) {
  program.client.fail_once("GET /v1/volumes/datasets", {Errc::Denied, "permission denied", "join the group"});
  EXPECT_EQ(program.run({"wait", "datasets"}), 1);
}

TEST_F(Wait, EndsWhenInterrupted) {
  then(status("waiting"));
  program.stop = true;
  EXPECT_EQ(program.run({"wait", "datasets"}), 130);
}

}  // namespace
}  // namespace spark::cli
