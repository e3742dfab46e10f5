#include "daemon/fleet/peer_service.hpp"

#include <gtest/gtest.h>

#include "daemon/workers/process_runner.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

using namespace spark;
using spark::fleet::PeerService;

namespace {

class PeerServiceTest : public testing::Test {
 protected:
  ScriptedWorker worker_;
  boost::asio::io_context context_;
  workers::ProcessRunner runner_{context_.get_executor(), worker_.program()};
  PeerService service_{context_.get_executor(), runner_, "/state"};
  config::Config config_;

  PeerServiceTest() {
    config_.cache.path = "/cache";
    config_.fleet.listen = {nvmetcp::Portal{"127.0.0.1", 7789}};
    config_.fleet.key_file = "/keys/fleet";
  }
  ~PeerServiceTest() override {
    service_.apply(config::Config());  // ends the worker
    EXPECT_TRUE(run_until(context_, [&] { return runner_.counts().running == 0; }));
  }
  bool is_serving() const { return service_.status().as_object().at("serving").as_bool(); }
  json::value reason() const { return service_.status().as_object().at("reason"); }
};

TEST_F(PeerServiceTest, AProcessThatEndedToUseAnotherKeyIsReplacedAndNotReportedAsAFailure) {
  const std::string report = "echo '{\"progress\": {\"peers\": []}}'; ";
  worker_.on("serve-peers", report + "[ $n = 1 ] && echo '{\"result\": {}}' || sleep 1000");
  service_.apply(config_);
  ASSERT_TRUE(run_until(context_, [&] {
    EXPECT_EQ(reason(),
              is_serving() ? json::value(nullptr) : json::value("the process that serves peers is starting"));
    return worker_.calls("serve-peers") == 2 && is_serving();
  }));
}

TEST_F(PeerServiceTest, AProcessThatServesWithoutTheCatalogSaysSo) {
  worker_.on("serve-peers",
             "echo '{\"progress\": {\"peers\": [], \"reason\": \"the catalog is gone\"}}'; sleep 1000");
  service_.apply(config_);
  ASSERT_TRUE(run_until(context_, [&] { return is_serving(); }));
  EXPECT_EQ(reason(), "the catalog is gone");
}

TEST_F(PeerServiceTest, AProcessThatFailedIsReplacedAndItsReasonIsShownUntilPeersAreServed) {
  const std::string error =
      "echo '{\"error\": {\"kind\": \"not_found\", \"what\": \"no key\", \"hint\": \"\"}}'";
  worker_.on("serve-peers",
             "[ $n = 1 ] && " + error + " || { echo '{\"progress\": {\"peers\": []}}'; sleep 1000; }");
  service_.apply(config_);
  ASSERT_TRUE(run_until(context_, [&] {
    return reason().is_string() && reason().as_string().find("no key") != std::string::npos;
  }));
  ASSERT_TRUE(run_until(context_, [&] { return is_serving(); }));
  EXPECT_EQ(reason(), nullptr);
}

// The reader of the folders knows what it saw at its last look, which may be of long ago.
TEST_F(PeerServiceTest, WhatIsOfferedIsToldByTheProcessThatServesIt) {
  const std::string offered = R"({"name": "a", "bytes": 5, "files": 1, "hash": "aa"})";
  worker_.on("serve-peers",
             "echo '{\"progress\": {\"peers\": [], \"offered\": [" + offered + "]}}'; sleep 1000");
  worker_.on("adopt-folders",
             R"(echo '{"progress": {"adopted": [{"name": "a", "state": "failed", "reason": "/secret"}, )"
             R"({"name": "b", "state": "offered", "reason": null, "bytes": 7, "files": 1, "hash": "bb"}, )"
             R"({"name": "c", "state": "failed", "reason": "/secret"}]}}'; sleep 1000)");
  for (const char* name : {"a", "b", "c"}) {
    config::Dataset& dataset = config_.datasets[name];
    dataset.name = name;
    dataset.path = std::string("/folder/") + name;
    dataset.adopt = true;
  }
  service_.apply(config_);
  json::value adopted;
  ASSERT_TRUE(run_until(context_, [&] {
    adopted = service_.status().at("adopted");
    return is_serving() && adopted.at(2).at("state") == "failed";
  }));
  EXPECT_EQ(adopted.at(0).at("state"), "offered");
  EXPECT_EQ(adopted.at(0).at("hash"), "aa");
  EXPECT_EQ(adopted.at(0).at("reason"), nullptr);
  EXPECT_EQ(adopted.at(1).at("state"), "hashing");
  EXPECT_FALSE(adopted.at(1).as_object().contains("hash"));
  EXPECT_EQ(adopted.at(2).at("reason"), "`journalctl -u spark-staged` has the reason");
  EXPECT_FALSE(service_.status().as_object().contains("offered"));
}

}  // namespace
