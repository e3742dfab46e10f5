#include "fleet/serve/served_counts.hpp"

#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

TEST(ServedCounts, RefusedHostsAreNamedForSomeMinutesAndStrangersDisplaceNone) {
  ServedCounts counts;
  const SteadyTime then{1h};
  counts.refused("10.0.0.9", Refusal::Key, then);
  for (int i = 0; i < 100; ++i) counts.refused("10.1.0." + std::to_string(i), Refusal::Unlisted, then);
  const json::object report = counts.report(then);
  const json::array& hosts = report.at("refused_hosts").as_array();
  EXPECT_EQ(hosts.size(), 16u);
  EXPECT_EQ(hosts[0].at("address"), "10.0.0.9");
  EXPECT_EQ(report.at("refused_by").at("unlisted"), 100);
  EXPECT_EQ(report.at("refused"), 101);
  EXPECT_TRUE(counts.report(then + 6min).at("refused_hosts").as_array().empty());
}

TEST(ServedCounts, BytesAndFailuresAreCountedForEachClient) {
  ServedCounts counts;
  counts.sent("a", 5);
  counts.sent("b", 7);
  counts.failed("b");
  const json::object report = counts.report({});
  EXPECT_EQ(report.at("served_bytes"), 12);
  EXPECT_EQ(report.at("clients").at(1), (json::value{{"address", "b"}, {"bytes", 7}, {"failures", 1}}));
}

}  // namespace
