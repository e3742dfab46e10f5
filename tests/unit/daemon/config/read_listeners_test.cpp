#include <gmock/gmock.h>

#include "daemon/config/parse.hpp"

using namespace spark;
using namespace spark::config;
using testing::HasSubstr;

namespace {

Result<Config> with_fleet(const std::string& fleet) {
  return parse("version: 1\nfleet: " + fleet + "\n", "c.yaml");
}

std::string refusal(const std::string& fleet) {
  const auto config = with_fleet(fleet);
  return config ? "taken" : config.error().message();
}

TEST(FleetConfig, IsReadCompletelyAndShownUnchanged) {
  const auto config = with_fleet(
      "{listen: 10.0.0.1:7789, key_file: /etc/k, upload: 2GB/s, peers: {a: [10.0.0.2, \"10.0.3.2:99\"], b: "
      "[fd00::3]}}");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->fleet.listen, (std::vector<nvmetcp::Portal>{{"10.0.0.1", 7789}}));
  EXPECT_EQ(config->fleet.key_file, "/etc/k");
  EXPECT_EQ(config->fleet.upload, (Amount{2'000'000'000, 0}));
  using Portals = std::vector<nvmetcp::Portal>;
  EXPECT_EQ(config->fleet.peers.at("a"), (Portals{{"10.0.0.2", 7789}, {"10.0.3.2", 99}}));
  EXPECT_EQ(config->fleet.peers.at("b"), (Portals{{"fd00::3", 7789}}));
  const auto again = parse(to_yaml(*config), "c.yaml");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->fleet, config->fleet);
}

TEST(FleetConfig, PeersMayComeFromDnsAndAHostMayListenOnSeveralAddresses) {
  const auto config =
      with_fleet("{listen: [10.0.0.1:7789, \"[fd00::1]:99\"], key_file: /etc/k, dns: sparks.lan}");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->fleet.dns, (nvmetcp::Portal{"sparks.lan", 7789}));
  EXPECT_EQ(config->fleet.listen, (std::vector<nvmetcp::Portal>{{"10.0.0.1", 7789}, {"fd00::1", 99}}));
  const auto again = parse(to_yaml(*config), "c.yaml");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->fleet, config->fleet);
}

TEST(FleetConfig, ADatasetMayHaveNoSourceButThePeers) {
  const auto config = parse(
      "version: 1\ndatasets:\n  photos: {source: peers, offline: allow}\n"
      "  qwen: {source: peers, model: Qwen/Qwen3-32B, check: complete}\n"
      "fleet: {listen: 10.0.0.1:7789, key_file: /etc/k, peers: {a: [10.0.0.2]}}\n",
      "c.yaml");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->datasets.at("photos").path, "");
  EXPECT_TRUE(config->datasets.at("photos").offline);
  EXPECT_EQ(config->datasets.at("qwen").model->name, "Qwen/Qwen3-32B");
  const auto again = parse(to_yaml(*config), "c.yaml");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->datasets, config->datasets);
}

TEST(FleetConfig, AFolderMayBeAdopted) {
  const auto config = parse(
      "version: 1\ndatasets:\n  photos: {path: /srv/photos, adopt: true}\n  other: {path: /srv/other}\n"
      "fleet: {listen: 10.0.0.1:7789, key_file: /etc/k, peers: {a: [10.0.0.2]}}\n",
      "c.yaml");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->datasets.at("photos").adopt);
  EXPECT_FALSE(config->datasets.at("other").adopt);
  const auto again = parse(to_yaml(*config), "c.yaml");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->datasets, config->datasets);
}

TEST(FleetConfig, IsOffByDefaultAndUploadDefaultsToHalfTheLink) {
  EXPECT_TRUE(parse("version: 1\n", "c")->fleet.listen.empty());
  const auto config = with_fleet("{listen: 10.0.0.1:7789, key_file: /etc/k, peers: {a: [10.0.0.2]}}");
  EXPECT_EQ(config->fleet.upload, (Amount{0, 50}));
}

TEST(FleetConfig, InvalidKeysAreRefusedWithTheReason) {
  EXPECT_THAT(refusal("{key_file: /etc/k, peers: {a: [10.0.0.2]}}"), HasSubstr("c.yaml:2:1: fleet.listen"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, peers: {a: [10.0.0.2]}}"), HasSubstr("spark-stage fleet key"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, key_file: /etc/k}"), HasSubstr("fleet.peers"));
  EXPECT_THAT(refusal("{listen: host:7789, key_file: /etc/k, peers: {a: [10.0.0.2]}}"),
              HasSubstr("no IP address"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, key_file: k, peers: {a: [10.0.0.2]}}"), HasSubstr("key_file"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, key_file: /k, upload: 0%, peers: {a: [10.0.0.2]}}"),
              HasSubstr("upload"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, key_file: /k, peers: {a: [10.0.0.2], b: [10.0.0.2]}}"),
              HasSubstr("as another peer has"));
  EXPECT_THAT(refusal("{listen: [], key_file: /k, dns: a}"), HasSubstr("fleet.listen"));
  EXPECT_THAT(refusal("{listen: [10.0.0.1], key_file: /k, dns: a}"), HasSubstr("no port to listen on"));
  EXPECT_THAT(refusal("{listen: 10.0.0.1:7789, key_file: /k, peer: {a: [10.0.0.2]}}"), HasSubstr("peers"));
}

}  // namespace
