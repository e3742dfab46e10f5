#include "nvmetcp/validate.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace spark::nvmetcp {
namespace {

using std::chrono::seconds;

TEST(Validate, TheDefaultsAreValid) {
  EXPECT_TRUE(validate(ConnectOptions{}));
}

TEST(Validate, TimersThatCantWorkTogetherAreNamed) {
  struct Case {
    const char* key;
    std::function<void(ConnectOptions&)> change;
  };
  const std::vector<Case> cases = {
      {"reconnect_delay", [](auto& o) { o.reconnect_delay = seconds(0); }},
      {"keep_alive", [](auto& o) { o.keep_alive = seconds(0); }},
      {"keep_alive", [](auto& o) { o.keep_alive = seconds(1'000'000); }},
      {"controller_loss", [](auto& o) { o.controller_loss = seconds(-1); }},
      {"controller_loss", [](auto& o) { o.controller_loss = seconds(1); }},
      {"fast_fail", [](auto& o) { o.fast_fail = seconds(1); }},
      {"io_policy", [](auto& o) { o.io_policy = "fastest"; }},
      {"fast_fail", [](auto& o) { o.controller_loss = seconds(10), o.fast_fail = seconds(11); }},
      {"io_queues", [](auto& o) { o.io_queues = 100'000; }},
      {"interface", [](auto& o) { o.interface = "eth0,ctrl_loss_tmo=0"; }},
      {"interface", [](auto& o) { o.interface = "sixteen-letters-"; }},
  };
  for (const Case& one : cases) {
    ConnectOptions options;
    one.change(options);
    const auto valid = validate(options);
    ASSERT_FALSE(valid) << one.key;
    EXPECT_EQ(valid.error().kind, Errc::Invalid);
    EXPECT_NE(valid.error().what.find(one.key), std::string::npos) << valid.error().what;
    EXPECT_FALSE(valid.error().hint.empty());
  }
}

TEST(Validate, TimersAtTheirLimitsAreValid) {
  ConnectOptions options;
  options.controller_loss = seconds(0);  // give up at the first loss
  EXPECT_TRUE(validate(options));
  options.controller_loss = seconds(2);
  options.fast_fail = seconds(2);
  EXPECT_TRUE(validate(options));
  options.controller_loss.reset();
  options.fast_fail = seconds(600);
  EXPECT_TRUE(validate(options));
}

TEST(Validate, NqnsNeedNoPrefixButMustNotAddAnOption) {
  EXPECT_TRUE(validate_nqn("raid5-data", "subsystem"));
  EXPECT_TRUE(validate_nqn("nqn.2026-01.io.spark:t1", "subsystem"));
  for (const std::string& bad : {std::string(), std::string(224, 'a'), std::string("a,tls"),
                                 std::string("a b"), std::string("a\nb"), std::string("a\0b", 3)}) {
    const auto valid = validate_nqn(bad, "subsystem");
    ASSERT_FALSE(valid) << bad;
    EXPECT_NE(valid.error().what.find("subsystem"), std::string::npos);
  }
}

TEST(Validate, PortalsAreAddressesOrNames) {
  for (const char* good : {"10.0.0.5", "fd00::5", "fe80::1%eth0", "rose.example.org"}) {
    EXPECT_TRUE(validate(Portal{good, 4420})) << good;
  }
  EXPECT_FALSE(validate(Portal{"10.0.0.5", 0}));
  for (const char* bad : {"", "10.0.0.5,hostnqn=x", "a b", "10.0.0.5/24"}) {
    EXPECT_FALSE(validate(Portal{bad, 4420})) << bad;
  }
}

TEST(Validate, AutomaticQueuesStayBetweenOneAndEight) {
  EXPECT_EQ(automatic_io_queues(0), 1U);
  EXPECT_EQ(automatic_io_queues(4), 4U);
  EXPECT_EQ(automatic_io_queues(20), 8U);
}

}  // namespace
}  // namespace spark::nvmetcp
