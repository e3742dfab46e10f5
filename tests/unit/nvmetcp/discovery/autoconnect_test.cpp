#include "nvmetcp/discovery/autoconnect.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

constexpr char kRule[] = "usr/lib/udev/rules.d/70-nvmf-autoconnect.rules";

constexpr char kNvmeEvents[] =
    "# Events from persistent discovery controllers\n"
    "ACTION==\"change\", SUBSYSTEM==\"nvme\", ENV{NVME_AEN}==\"0x70f002\", \\\n  RUN+=\"/bin/systemctl "
    "--no-block restart x\"\n";

struct AutoconnectTest : testing::Test {
  std::string rule() const { return autoconnect_rule(host.root()); }
  test::FakeSysfs host;
};

TEST_F(AutoconnectTest, WithoutNvmeCliThereIsNoRule) {
  EXPECT_EQ(rule(), "");
}

TEST_F(AutoconnectTest, TheRuleOfNvmeCliIsNamedUntilItIsMasked) {
  host.write(kRule, kNvmeEvents);
  EXPECT_EQ(rule(), std::string("/") + kRule);
  std::filesystem::create_directories(host.root() / "etc/udev/rules.d");
  std::filesystem::create_symlink("/dev/null", host.root() / "etc/udev/rules.d/70-nvmf-autoconnect.rules");
  EXPECT_EQ(rule(), "");
}

TEST_F(AutoconnectTest, TheRuleOfNvmeCli3IsNotNamed) {
  host.write(kRule, kNvmeEvents);
  host.write("usr/lib/udev/rules.d/70-nvmf-registry.rules", "ACTION==\"remove\"");
  EXPECT_EQ(rule(), "");
}

// nvme-stas 2.4 does so while stafd runs.
TEST_F(AutoconnectTest, ARuleForFibreChannelOnlyIsNotNamed) {
  host.write(kRule, kNvmeEvents);
  host.write(
      "run/udev/rules.d/70-nvmf-autoconnect.rules",
      "\n# ACTION==\"change\", SUBSYSTEM==\"nvme\"\nACTION==\"change\", SUBSYSTEM==\"fc\", RUN+=\"x\"\n");
  EXPECT_EQ(rule(), "");
  std::filesystem::remove(host.root() / "run/udev/rules.d/70-nvmf-autoconnect.rules");
  EXPECT_EQ(rule(), std::string("/") + kRule);
}

}  // namespace
}  // namespace spark::nvmetcp
