#include "fleet/protocol/set_id.hpp"

#include <gtest/gtest.h>

using namespace spark::fleet;
using spark::staging::Entry;
using spark::staging::EntryType;

namespace {

std::string id_of(SetKind kind, const std::vector<Entry>& entries) {
  SetNaming naming(kind);
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

TEST(SetId, PathSizeAndTimeMakeThePlainName) {
  const std::string name = id_of(SetKind::Plain, set());
  EXPECT_TRUE(is_set_id(name));
  auto other = set();
  other[0].mtime_ns = 100;  // a folder's time changes with temporary files
  other[1].inode = 10;
  EXPECT_EQ(id_of(SetKind::Plain, other), name);
  for (int change = 0; change < 3; ++change) {
    auto changed = set();
    if (change == 0) changed[1].path = "c";
    if (change == 1) changed[1].size = 6;
    if (change == 2) changed[1].mtime_ns = 8;
    EXPECT_NE(id_of(SetKind::Plain, changed), name);
  }
}

TEST(SetId, OfOneFileSystemTheInodeAndTheTimeOfChangeCountAsWell) {
  const std::string name = id_of(SetKind::Exact, set());
  EXPECT_NE(name, id_of(SetKind::Plain, set()));
  auto other = set();
  other[1].inode = 10;
  EXPECT_NE(id_of(SetKind::Exact, other), name);
  other = set();
  other[1].ctime_ns = 1;
  EXPECT_NE(id_of(SetKind::Exact, other), name);
}

TEST(SetId, AFurtherNameOfAFileIsNoContentOfItsOwn) {
  auto linked = set();
  linked.emplace_back();
  linked.back().path = "c";
  linked.back().link_to = "a";
  EXPECT_EQ(id_of(SetKind::Plain, linked), id_of(SetKind::Plain, set()));
}

TEST(SetId, OnlyWhatItWritesIsAName) {
  EXPECT_FALSE(is_set_id(""));
  EXPECT_FALSE(is_set_id("p" + std::string(32, 'A')));
  EXPECT_FALSE(is_set_id("../" + std::string(30, 'a')));
}

}  // namespace
