#include "nvmetcp/sysfs/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "nvmetcp/sysfs/sysfs.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

struct RegistryTest : testing::Test {
  RegistryTest() { host.write("sys/kernel/uevent_seqnum", "4711"); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(host.root() / "run/nvme/registry"))
      names.push_back(entry.path().filename());
    return names;
  }
  test::FakeSysfs host;
};

TEST_F(RegistryTest, AClaimedControllerHasOurOwnerAndItsSequenceNumber) {
  ASSERT_TRUE(claim(host.root(), "nvme3"));
  EXPECT_EQ(owner_of(host.root(), "nvme3"), kOwner);
  EXPECT_EQ(host.read("run/nvme/registry/nvme3/seqnum"), "4711");
  EXPECT_THAT(entries(), testing::ElementsAre("nvme3")) << "nothing else is left there";
  struct stat info {};
  ASSERT_EQ(::stat((host.root() / "run/nvme/registry/nvme3").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755U) << "everybody may read it";
}

TEST_F(RegistryTest, AClaimReplacesTheEntryOfAnEarlierController) {
  host.write("run/nvme/registry/nvme3/owner", "stas");
  host.write("run/nvme/registry/nvme3/note", "somebody's");
  ASSERT_TRUE(claim(host.root(), "nvme3"));
  EXPECT_EQ(owner_of(host.root(), "nvme3"), kOwner);
  EXPECT_FALSE(host.has("run/nvme/registry/nvme3/note"));
  EXPECT_THAT(entries(), testing::ElementsAre("nvme3"));
}

TEST_F(RegistryTest, OnlyOurOwnEntriesAreRemoved) {
  host.write("run/nvme/registry/nvme1/owner", "nbft");
  ASSERT_TRUE(claim(host.root(), "nvme3"));
  disown(host.root(), "nvme1");
  disown(host.root(), "nvme3");
  disown(host.root(), "nvme7");
  EXPECT_THAT(entries(), testing::ElementsAre("nvme1"));
}

TEST_F(RegistryTest, OurEntriesOfMissingControllersAreRemoved) {
  host.add_controller(test::tcp_controller("nvme1", "a"));
  for (const char* name : {"nvme1", "nvme2"}) ASSERT_TRUE(claim(host.root(), name));
  host.write("run/nvme/registry/nvme3/owner", "stas");
  forget_gone(host.root());
  EXPECT_THAT(entries(), testing::UnorderedElementsAre("nvme1", "nvme3"));
}

TEST_F(RegistryTest, AMissingEntryHasNoOwnerAndNamesCannotEscapeTheRegistry) {
  EXPECT_EQ(owner_of(host.root(), "nvme3"), "");
  host.write("etc/owner", "x");
  EXPECT_EQ(owner_of(host.root(), "../../../etc"), "");
  EXPECT_EQ(claim(host.root(), "../nvme3").error().kind, Errc::Invalid);
}

TEST_F(RegistryTest, AControllerReportsItsOwner) {
  host.add_controller(test::tcp_controller("nvme1", "a"));
  host.write("run/nvme/registry/nvme1/owner", "stas");
  ControllerList list(host.root());
  EXPECT_TRUE(is_foreign(list.look()->at(0)));
  ASSERT_TRUE(claim(host.root(), "nvme1"));
  const auto ours = list.look()->at(0);
  EXPECT_EQ(ours.owner, kOwner) << "asked anew at every look";
  EXPECT_FALSE(is_foreign(ours));
}

}  // namespace
}  // namespace spark::nvmetcp
