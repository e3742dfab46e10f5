#include "fleet/protocol/set_id.hpp"

#include <gtest/gtest.h>

using namespace spark::fleet;
using spark::staging::Entry;
using spark::staging::EntryType;

namespace {

std::string id_of(const std::vector<Entry>& entries, const std::string& state = "",
                  const std::string& source = "") {
  SetNaming naming({state, source});
  for (const Entry& entry : entries) naming.add(entry);
  return naming.id();
}

std::vector<Entry> set() {
  std::vector<Entry> entries(3);
  entries[0].type = EntryType::Folder;
  entries[1].path = "a";
  entries[1].size = 5;
  entries[1].mtime_ns = 7;
  entries[1].inode = 9;
  entries[2].path = "b";
  return entries;
}

// Two models with equal names and sizes, and the times that an archive gave them.
TEST(SetId, OfAnNfsExportDependsOnWhatTheServerKnowsOfEachFile) {
  const std::string name = id_of(set(), "", "nfs 10.0.0.1:/data");
  EXPECT_TRUE(is_set_id(name));
  EXPECT_EQ(id_of(set(), "", "nfs 10.0.0.1:/data"), name);
  EXPECT_NE(id_of(set(), "", "nfs 10.0.0.2:/data"), name);
  auto other = set();
  other[1].inode = 10;
  EXPECT_NE(id_of(other, "", "nfs 10.0.0.1:/data"), name);
  other = set();
  other[1].ctime_ns = 1;
  EXPECT_NE(id_of(other, "", "nfs 10.0.0.1:/data"), name);
}

TEST(SetId, OfAPlainFolderIsExchangedOnlyIfTheUserSaysSo) {
  EXPECT_FALSE(is_exchanged({"", ""}));
  EXPECT_TRUE(is_exchanged({"", "folder v1"}));
  EXPECT_TRUE(is_exchanged({"superblock 1", ""}));
}

// As two versions of a model with equal names, sizes and the times of an archive.
TEST(SetId, OfAPlainFolderDependsOnTheDataset) {
  EXPECT_EQ(id_of(set(), "", "folder v1"), id_of(set(), "", "folder v1"));
  EXPECT_NE(id_of(set(), "", "folder v1"), id_of(set(), "", "folder v2"));
}

// Two hosts that downloaded the same model apart.
TEST(SetId, OfACopyNamedByItsContentDoesNotDependOnTimes) {
  const std::string one = content_origin(std::string(32, 'a'));
  const std::string name = id_of(set(), "", one);
  EXPECT_TRUE(is_set_id(name));
  EXPECT_EQ(name[0], 'c');
  auto other = set();
  other[1].mtime_ns = 8;
  other[1].ctime_ns = other[1].inode = 3;
  EXPECT_EQ(id_of(other, "", one), name);
  EXPECT_NE(id_of(set(), "", content_origin(std::string(32, 'b'))), name);
  other[2].link_to = "a";
  EXPECT_NE(id_of(other, "", one), name) << "hosts with other hard links number their units differently";
}

TEST(SetId, DependsOnPathSizeAndTime) {
  const std::string name = id_of(set());
  EXPECT_TRUE(is_set_id(name));
  auto other = set();
  other[0].mtime_ns = 100;  // temporary files change a folder's time
  other[1].inode = 10;
  EXPECT_EQ(id_of(other), name);
  for (int change = 0; change < 3; ++change) {
    auto changed = set();
    if (change == 0) changed[1].path = "c";
    if (change == 1) changed[1].size = 6;
    if (change == 2) changed[1].mtime_ns = 8;
    EXPECT_NE(id_of(changed), name);
  }
}

TEST(SetId, DependsOnTheStateOfAVolumeToo) {
  const std::string name = id_of(set(), "superblock 1");
  EXPECT_TRUE(is_set_id(name));
  EXPECT_EQ(id_of(set(), "superblock 1"), name);
  EXPECT_NE(id_of(set(), "superblock 2"), name);
  EXPECT_NE(id_of(set()), name);
  auto other = set();
  other[1].size = 6;
  EXPECT_NE(id_of(other, "superblock 1"), name) << "hosts whose walks differ number their units differently";
}

TEST(SetId, AHardLinkDoesNotChangeIt) {
  auto linked = set();
  linked.emplace_back();
  linked.back().path = "c";
  linked.back().link_to = "a";
  EXPECT_EQ(id_of(linked), id_of(set()));
}

TEST(SetId, AnInvalidIdIsRejected) {
  EXPECT_FALSE(is_set_id(""));
  EXPECT_FALSE(is_set_id("p" + std::string(32, 'A')));
  EXPECT_FALSE(is_set_id("../" + std::string(30, 'a')));
  EXPECT_FALSE(is_set_id(std::string(33, 'a')));
}

}  // namespace
