// The list of a volume's files that another host sends.
#include <gtest/gtest.h>

#include "tests/unit/fleet/fetch/fake_host.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::answering;
using spark::fleet::test::FakeHost;
using spark::fleet::test::FleetHost;
using staging::Entry;
using staging::EntryType;

namespace {

Entry walked_entry(const char* path, EntryType type, const char* link_to = "") {
  Entry made;
  made.path = path;
  made.type = type;
  made.link_to = link_to;
  return made;
}

class SharedWalkTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  const spark::test::TempFolder folder_;

  // Whether a host takes these entries from another host, and does not walk the volume itself.
  bool takes(std::vector<Entry> entries) {
    staging::Manifest manifest;
    manifest.entries.push_back(walked_entry("", EntryType::Folder));
    for (Entry& one : entries) manifest.entries.push_back(std::move(one));
    EXPECT_TRUE(staging::write_manifest(folder_ / "entries", manifest));
    const std::string sent = read_file(folder_ / "entries").value();
    FakeHost fake(key_, answering([&](const PeerRequest& request) -> std::string {
                    if (request.kind == PeerRequest::Kind::WalkEntries) return sent;
                    if (request.kind == PeerRequest::Kind::WalkNotes)
                      return staging::to_text(staging::WalkNotes{});
                    SetState state;
                    state.kind = SetState::Kind::Published;
                    state.node = 7;
                    state.unit_count = 1;
                    return to_text(state);
                  }));
    FleetHost host(key_, "nqn.host");
    const auto exchange = host.exchange({fake.address()});
    exchange->begin("superblock 1");
    bool has_walked = false;
    const auto walked = exchange->walk([&]() -> Result<staging::Walked> {
      has_walked = true;
      return staging::Walked{};
    });
    EXPECT_TRUE(walked);
    EXPECT_TRUE(has_walked || walked->entries.size() == manifest.entries.size());
    return !has_walked;
  }
};

TEST_F(SharedWalkTest, AListWithFoldersAndHardLinksIsTaken) {
  EXPECT_TRUE(takes({walked_entry("a", EntryType::File), walked_entry("a-b", EntryType::File),
                     walked_entry("b", EntryType::Folder), walked_entry("b/c", EntryType::Folder),
                     walked_entry("b/c/d", EntryType::File, "a"), walked_entry("b/c/e", EntryType::Symlink),
                     walked_entry("b/f", EntryType::File)}));
}

TEST_F(SharedWalkTest, AListWithAFileOutsideItsFoldersIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("b/c", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("b", EntryType::Folder), walked_entry("b/c/d", EntryType::File)}));
}

TEST_F(SharedWalkTest, AListWithAFileInsideAFileIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("b", EntryType::File), walked_entry("b/c", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("b", EntryType::Symlink), walked_entry("b/c", EntryType::File)}));
}

TEST_F(SharedWalkTest, AListWithAHardLinkToNoEarlierFileIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "none")}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "b"), walked_entry("b", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::Folder), walked_entry("b", EntryType::File, "a")}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "a")}));
}

}  // namespace
