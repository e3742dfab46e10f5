#include "nvmetcp/discovery/exclusions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using testing::HasSubstr;

// True if the file's text excludes subsystem "raid5-data" at [fd00::5]:4420, over eth1.
bool excludes(const std::string& text) {
  return find_exclusion(parse_exclusions(text, "f"), "raid5-data", {"fd00::5", 4420}, test::test_host(),
                        "eth1")
      .has_value();
}
bool excludes_entry(const std::string& entry) {
  return excludes("[exclusions]\nexclusion = " + entry + "\n");
}

TEST(Exclusions, OneFieldIsEnoughAndAllGivenFieldsMustMatch) {
  EXPECT_TRUE(excludes_entry("nqn=raid5-data"));
  EXPECT_TRUE(excludes_entry("transport=tcp;traddr=fd00::5;trsvcid=4420;nqn=raid5-data"));
  EXPECT_TRUE(excludes_entry("host-iface=eth1"));
  EXPECT_TRUE(excludes_entry(" transport = tcp ; "));
  EXPECT_TRUE(excludes_entry("hostnqn=" + test::test_host().nqn + ";hostid=" + test::test_host().id));
  EXPECT_FALSE(excludes_entry("transport=rdma;nqn=raid5-data"));
  EXPECT_FALSE(excludes_entry("nqn=raid5-data;trsvcid=8009"));
  EXPECT_FALSE(excludes_entry("nqn=raid5"));
}

TEST(Exclusions, AddressesAreComparedIndependentlyOfNotation) {
  EXPECT_TRUE(excludes_entry("traddr=FD00:0:0:0::0005"));
  EXPECT_FALSE(excludes_entry("traddr=fd00::6"));
}

TEST(Exclusions, AFieldThatTheConnectionLacksDoesNotMatch) {
  EXPECT_FALSE(excludes_entry("host-traddr=10.0.0.9"));
  EXPECT_FALSE(excludes_entry("nqn=raid5-data;host-traddr=10.0.0.9"));
}

TEST(Exclusions, AMalformedLineExcludesNothing) {
  for (const char* entry : {"", ";;", "nqn", "nqn=", "nqn=raid5-data;typo=1", "subsysnqn=raid5-data"})
    EXPECT_FALSE(excludes_entry(entry)) << entry;
}

TEST(Exclusions, OnlyEntriesOfTheirSectionCount) {
  EXPECT_FALSE(excludes("exclusion = nqn=raid5-data\n"));
  EXPECT_FALSE(excludes("[other]\nexclusion = nqn=raid5-data\n"));
  EXPECT_FALSE(excludes("[exclusions]\n# exclusion = nqn=raid5-data\n"));
  EXPECT_TRUE(excludes("[other]\nx=y\n\n[exclusions]\n\n# why\r\nexclusion = nqn=raid5-data\r\n"));
}

TEST(Exclusions, TheMessageNamesTheFileAndTheLine) {
  test::FakeSysfs host;
  host.write("etc/nvme/exclusions.conf", "[exclusions]\nexclusion = nqn=other");
  host.write("etc/nvme/exclusions.conf.d/lab.conf", "# the lab\n[exclusions]\nexclusion = traddr=10.0.0.5");
  host.write("etc/nvme/exclusions.conf.d/old.bak", "[exclusions]\nexclusion = nqn=raid5-data");
  const auto at = [&](const char* address) {
    return check_not_excluded(host.root(), "raid5-data", {address, 4420}, test::test_host(), "");
  };
  const auto refused = at("10.0.0.5");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("/etc/nvme/exclusions.conf.d/lab.conf:3 excludes it"));
  EXPECT_TRUE(at("10.0.0.6")) << "a backup is no list";
  host.remove("etc/nvme");
  EXPECT_TRUE(at("10.0.0.5"));
}

}  // namespace
}  // namespace spark::nvmetcp
