#include "cli/join/fleet_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;

const FleetHere kFleet{{"10.0.0.1", 7789}, "/etc/k", {{"spark2", {"10.0.0.2", 7789}}}};
constexpr char kSection[] =
    "fleet:\n  listen: 10.0.0.1:7789\n  key_file: /etc/k\n  peers:\n    spark2: [10.0.0.2]\n";

std::string text_with(const std::string& yaml, const FleetHere& fleet = kFleet) {
  const auto text = with_fleet(yaml, "c.yaml", fleet);
  EXPECT_TRUE(text) << text.error().message();
  return text.value_or("");
}

Error refused(const std::string& yaml, const FleetHere& fleet = kFleet) {
  const auto text = with_fleet(yaml, "c.yaml", fleet);
  EXPECT_FALSE(text) << *text;
  return text ? Error{} : text.error();
}

TEST(FleetText, AFileThatIsNotThereBecomesAConfiguration) {
  EXPECT_EQ(text_with(""), std::string("version: 1\n\n") + kSection);
  EXPECT_EQ(text_with("# mine"), std::string("# mine\nversion: 1\n\n") + kSection);
}

TEST(FleetText, TheRestOfTheFileStaysAsItIs) {
  const std::string mine = "version: 1   # ours\n\ndatasets:\n  a: {path: /a}   # keep\n# the end";
  EXPECT_EQ(text_with(mine), mine + "\n\n" + kSection);
  EXPECT_EQ(text_with(text_with(mine)), text_with(mine)) << "a second time changes nothing";
}

TEST(FleetText, IPv6AddressesAndOtherPortsAreValid) {
  const FleetHere six{
      {"fd00::1", 99}, "/etc/k", {{"b", {"fd00::2", 99}}, {"c", {"fd00::3", 5}}, {"d", {"d.lan", 7}}}};
  const auto config = config::parse(text_with("version: 1\n", six), "c.yaml");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->fleet.listen.front(), six.listen);
  for (const auto& peer : six.peers) EXPECT_EQ(config->fleet.peers.at(peer.name).front(), peer.address);
}

TEST(FleetText, PeersAreAddedToASectionWhateverItsStyle) {
  const std::string begin = "version: 1\nfleet:\n  listen: 10.0.0.1:7789   # mine\n  key_file: /etc/k\n";
  const FleetHere both{kFleet.listen, kFleet.key_file, {{"a", {"10.0.0.9", 7789}}, {"b", {"10.0.0.8", 7}}}};
  const std::pair<std::string, std::string> cases[] = {
      {"  peers: {}\n", "  peers:\n    a: [10.0.0.9]\n    b: [10.0.0.8:7]\n"},
      {"  peers: {}   # none yet\n  upload: 1GB/s\n",
       "  peers:   # none yet\n    a: [10.0.0.9]\n    b: [10.0.0.8:7]\n  upload: 1GB/s\n"},
      {"  peers: {x: [10.0.0.7]}   # {x}\n",
       "  peers: {x: [10.0.0.7], a: [10.0.0.9], b: [10.0.0.8:7]}   # {x}\n"},
      {"  peers:   # all\n\n      x: [10.0.0.7]\ndatasets: {}\n",
       "  peers:   # all\n      a: [10.0.0.9]\n      b: [10.0.0.8:7]\n\n      x: [10.0.0.7]\ndatasets: "
       "{}\n"}};
  for (const auto& [before, after] : cases) {
    EXPECT_EQ(text_with(begin + before, both), begin + after);
    EXPECT_EQ(text_with(begin + after, both), begin + after);
  }
}

TEST(FleetText, APeerThatIsThereUnderAnotherNameIsNotAdded) {
  const std::string there =
      "version: 1\nfleet: {listen: '10.0.0.1:7789', key_file: /etc/k, peers: {x: [10.0.0.2]}}\n";
  EXPECT_EQ(text_with(there), there);
}

TEST(FleetText, WhatWouldHaveToBeChangedIsRefused) {
  const auto section = [](const std::string& listen, const std::string& key, const std::string& peers) {
    return "version: 1\nfleet:\n  listen: " + listen + "\n  key_file: " + key + "\n  peers: " + peers + "\n";
  };
  const Error listen = refused(section("10.0.0.5:7789", "/etc/k", "{}"));
  EXPECT_EQ(listen.kind, Errc::Refused);
  EXPECT_THAT(listen.what, HasSubstr("fleet.listen is 10.0.0.5:7789, not 10.0.0.1:7789"));
  EXPECT_THAT(refused(section("10.0.0.1:7789", "/etc/other", "{}")).what,
              HasSubstr("fleet.key_file is /etc/other"));
  EXPECT_THAT(refused(section("10.0.0.1:7789", "/etc/k", "{spark2: [10.0.0.3]}")).what,
              HasSubstr("fleet.peers.spark2"));
}

TEST(FleetText, ATextThatCanNotBeAddedToIsNamedWithWhatToWrite) {
  const Error flow = refused("{version: 1}\n");
  EXPECT_EQ(flow.kind, Errc::Refused);
  EXPECT_THAT(flow.hint, HasSubstr("listen: 10.0.0.1:7789"));
  const Error peers = refused("version: 1\nfleet: {listen: '10.0.0.1:7789', key_file: /etc/k, peers: {}}\n");
  EXPECT_THAT(peers.hint, HasSubstr("spark2: [10.0.0.2]"));
  EXPECT_EQ(refused("version: 1\nfoo: 1\n").kind, Errc::Invalid);
}

}  // namespace
}  // namespace spark::cli
