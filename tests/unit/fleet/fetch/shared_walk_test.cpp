// The list of a volume's files that another host sends.
#include <gtest/gtest.h>

#include <atomic>

#include "fleet/protocol/set_id.hpp"
#include "fleet/serve/walks.hpp"
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

// Answers of a host that stays as it is, before it changes: many more than a host needs that does not wait.
constexpr int kLooks = 20;

class SharedWalkTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  const spark::test::TempFolder folder_;
  std::atomic<int> looks_{0};
  bool is_slow_ = false;

  std::string list_of(std::vector<Entry> entries, EntryType root = EntryType::Folder) {
    staging::Manifest manifest;
    manifest.entries.push_back(walked_entry("", root));
    for (Entry& one : entries) manifest.entries.push_back(std::move(one));
    EXPECT_TRUE(staging::write_manifest(folder_ / "entries", manifest));
    return read_file(folder_ / "entries").value();
  }
  // Whether a host takes the list of another one, and does not walk the volume itself. By its number alone,
  // the other one walks it; for a slow host, this one.
  bool takes(const std::function<std::string()>& list, const std::function<SetState()>& state) {
    FakeHost fake(key_, answering([&](const PeerRequest& request) -> std::string {
                    if (request.kind == PeerRequest::Kind::WalkEntries) return list();
                    if (request.kind == PeerRequest::Kind::WalkNotes)
                      return staging::to_text(staging::WalkNotes{});
                    SetState answer = state();
                    for (answer.node = 1; (weight(answer.node, 0) < weight(request.from, 0)) != is_slow_;)
                      ++answer.node;
                    answer.unit_count = 1;
                    return to_text(answer);
                  }));
    FleetHost host(key_, "nqn.host");
    const auto exchange = host.exchange({fake.address()}, false, is_slow_);
    exchange->begin({"superblock 1", ""});
    bool has_walked = false;
    const auto walked = exchange->walk([&]() -> Result<staging::Walked> {
      has_walked = true;
      return staging::Walked{};
    });
    EXPECT_TRUE(walked);
    EXPECT_NE(has_walked, walked && !walked->entries.empty());
    return !has_walked;
  }
  bool takes(std::vector<Entry> entries) {
    const std::string list = list_of(std::move(entries));
    return takes([&] { return list; }, [] { return published(); });
  }
  static SetState published() {
    SetState state;
    state.kind = SetState::Kind::Published;
    return state;
  }
  static SetState staging(UnitState unit, SetState::Reads reads = SetState::Reads::Normally) {
    SetState state;
    state.kind = SetState::Kind::Staging;
    state.units = {unit};
    state.reads = reads;
    return state;
  }
  // How this host walks its volume, as its peers are told while it does.
  SetState::Reads told_by(bool is_source_away, bool is_slow) {
    FleetHost host(key_, "nqn.host"), other(key_, "nqn.other");
    const auto exchange = host.exchange({other.address()}, is_source_away, is_slow);
    exchange->begin({"superblock 1", ""});
    PublishedCopies published(host.cache_path(), host.boards().parent_path(), {});
    std::optional<SetState::Reads> told;
    const auto walked = exchange->walk([&]() -> Result<staging::Walked> {
      const SetState state = Walks(host.boards(), published).state(SetNaming({"superblock 1", ""}).id(), 0);
      if (state.kind == SetState::Kind::Staging) told = state.reads;
      return staging::Walked{};
    });
    EXPECT_TRUE(walked);
    return told.value();
  }
};

TEST_F(SharedWalkTest, AHostThatAnswersAndDoesNotWalkIsWaitedForIfItReadsNormally) {
  const std::string list = list_of({walked_entry("a", EntryType::File)});
  EXPECT_TRUE(takes([&] { return list; },
                    [&] { return staging(++looks_ > kLooks / 4 ? UnitState::HasFile : UnitState::Absent); }));
}

TEST_F(SharedWalkTest, ASlowHostIsNotWaitedFor) {
  const std::string list = list_of({walked_entry("a", EntryType::File)});
  EXPECT_FALSE(takes([&] { return list; },
                     [&] {
                       return staging(++looks_ > kLooks ? UnitState::HasFile : UnitState::Absent,
                                      SetState::Reads::Slowly);
                     }));
}

TEST_F(SharedWalkTest, ASlowHostWaitsForOneThatReadsNormally) {
  is_slow_ = true;
  const std::string list = list_of({walked_entry("a", EntryType::File)});
  EXPECT_TRUE(takes([&] { return list; },
                    [&] { return staging(++looks_ > kLooks / 4 ? UnitState::HasFile : UnitState::Absent); }));
}

TEST_F(SharedWalkTest, AHostTellsItsPeersHowItReadsItsVolume) {
  EXPECT_EQ(told_by(false, false), SetState::Reads::Normally);
  EXPECT_EQ(told_by(false, true), SetState::Reads::Slowly);
  EXPECT_EQ(told_by(true, false), SetState::Reads::Never);
}

TEST_F(SharedWalkTest, AHostWhoseListCannotBeUsedIsNotWaitedForWhileItStages) {
  const std::string bad = list_of({walked_entry("b/c", EntryType::File)});
  const std::string good = list_of({walked_entry("a", EntryType::File)});
  EXPECT_FALSE(takes([&] { return looks_ > kLooks ? good : bad; },
                     [&] { return ++looks_ > kLooks ? published() : staging(UnitState::HasFile); }));
}

TEST_F(SharedWalkTest, AListWithFoldersAndHardLinksIsTaken) {
  EXPECT_TRUE(takes({walked_entry("a", EntryType::File), walked_entry("a-b", EntryType::File),
                     walked_entry("b", EntryType::Folder), walked_entry("b/c", EntryType::Folder),
                     walked_entry("b/c/d", EntryType::File, "a"), walked_entry("b/c/e", EntryType::Symlink),
                     walked_entry("b/f", EntryType::File)}));
}

// The copy would be a link to any folder of this host.
TEST_F(SharedWalkTest, AListWhoseRootIsALinkIsNotTaken) {
  EXPECT_FALSE(takes([&] { return list_of({}, EntryType::Symlink); }, [] { return published(); }));
}

TEST_F(SharedWalkTest, AListWithAFileOutsideItsFoldersIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("b/c", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("b", EntryType::Folder), walked_entry("b/c/d", EntryType::File)}));
}

TEST_F(SharedWalkTest, AListWithAFileInsideAFileIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("b", EntryType::File), walked_entry("b/c", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("b", EntryType::Symlink), walked_entry("b/c", EntryType::File)}));
}

TEST_F(SharedWalkTest, AListWithAFileLargerThanAnySourceMayHaveIsNotTaken) {
  Entry large = walked_entry("a", EntryType::File);
  large.size = 65 * kTiB;
  EXPECT_FALSE(takes({large}));
}

TEST_F(SharedWalkTest, AListWithAHardLinkToNoEarlierFileIsNotTaken) {
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "none")}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "b"), walked_entry("b", EntryType::File)}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::Folder), walked_entry("b", EntryType::File, "a")}));
  EXPECT_FALSE(takes({walked_entry("a", EntryType::File, "a")}));
}

}  // namespace
