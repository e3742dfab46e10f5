#include "nvmetcp/autoconnect.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

constexpr char kRule[] = "usr/lib/udev/rules.d/70-nvmf-autoconnect.rules";

struct AutoconnectTest : testing::Test {
  std::string rule() const { return autoconnect_rule(host.root()); }
  test::FakeSysfs host;
};

TEST_F(AutoconnectTest, WithoutNvmeCliThereIsNone) {
  EXPECT_EQ(rule(), "");
}

TEST_F(AutoconnectTest, TheRuleOfNvmeCliIsNamedUntilSomebodySwitchesItOff) {
  host.write(kRule, "ACTION==\"change\"");
  EXPECT_EQ(rule(), std::string("/") + kRule);
  std::filesystem::create_directories(host.root() / "etc/udev/rules.d");
  std::filesystem::create_symlink("/dev/null", host.root() / "etc/udev/rules.d/70-nvmf-autoconnect.rules");
  EXPECT_EQ(rule(), "");
}

TEST_F(AutoconnectTest, FromVersion3OnItLeavesOthersConnectionsAlone) {
  host.write(kRule, "ACTION==\"change\"");
  host.write("usr/lib/udev/rules.d/70-nvmf-registry.rules", "ACTION==\"remove\"");
  EXPECT_EQ(rule(), "");
}

}  // namespace
}  // namespace spark::nvmetcp
