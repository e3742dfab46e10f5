#include "daemon/config/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spark::config {
namespace {

using testing::HasSubstr;

constexpr char kOwnCache[] = "cache: {path: /tmp/try/cache}\n";

Config read(const std::string& sections) {
  return parse("version: 1\n" + sections, "try.yaml").value();
}

TEST(Simulation, AFileWithTheSectionIsForASimulatedHostOnly) {
  const Config simulated = read(kOwnCache + std::string("simulation: {}\n"));
  EXPECT_TRUE(check_simulation(simulated, true));
  const auto refused = check_simulation(simulated, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Invalid);
  EXPECT_THAT(refused.error().message(), HasSubstr("try.yaml describes a simulated host, not this one"));
}

TEST(Simulation, AFileWithoutTheSectionIsForARealHostOnly) {
  const Config real = read(kOwnCache);
  EXPECT_TRUE(check_simulation(real, false));
  EXPECT_THAT(check_simulation(real, true).error().message(),
              HasSubstr("try.yaml has no section `simulation`"));
}

TEST(Simulation, ASimulationMayNotUseTheHostsOwnCache) {
  EXPECT_THAT(check_simulation(read("simulation: {}\n"), true).error().message(),
              HasSubstr("this host's own cache, /var/lib/spark-stage/cache"));
  EXPECT_TRUE(check_simulation(read(""), false));
}

}  // namespace
}  // namespace spark::config
