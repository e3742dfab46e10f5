// A view of a real copy.
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "staging/copy/exchange.hpp"
#include "tests/unit/staging/random_tree.hpp"
#include "tests/unit/staging/view/view_copy_fixture.hpp"

namespace spark::staging::test {
namespace {

using Outcome = ViewRead::Outcome;

TEST_F(ViewCopyTest, ShowsEachPieceOnceItIsThere) {
  options_.threads = options_.depth = 1;
  write_text(source_ / "a/large", noise(20 * kMiB + 3, 1));
  write_text(source_ / "small", "small");
  unsigned looked = 0;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (path != "a/large" || offset == 0) return;
    const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
    const NodeNumber file = find(*tree_, "a/large");
    // The chunk before this one is hashed and written, its piece is complete only at its end.
    const Bytes piece = offset / kHashPiece * kHashPiece;
    if (piece > 0) {
      const ViewRead read = reader_->read({file, piece - 100, 100}, buffer);
      ASSERT_EQ(read.outcome, Outcome::Here);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.bytes.data()), 100),
                noise(20 * kMiB + 3, 1).substr(piece - 100, 100));
    }
    EXPECT_EQ(reader_->read({file, piece, 1}, buffer).outcome, Outcome::Missing);
    EXPECT_EQ(reader_->read({file, 20 * kMiB, 50}, buffer).outcome, Outcome::Missing);
    ++looked;
  };
  ASSERT_OK(copy_now());
  EXPECT_GT(looked, 3U);
  EXPECT_EQ(whole("a/large"), noise(20 * kMiB + 3, 1));
  EXPECT_EQ(whole("small"), "small");
}

TEST_F(ViewCopyTest, ShowsARandomTreeAsItIs) {
  make_random_tree(source_, 7);
  drop_acls_of_folders(source_);
  ASSERT_OK(copy_now());
  unsigned compared = 0;
  for (NodeNumber number = 0; number < tree_->size(); ++number) {
    const Entry& entry = tree_->node(number).entry;
    if (entry.type != EntryType::File) continue;
    const auto bytes = ViewTest::whole(*reader_, *tree_, tree_->node(number).file);
    if (!bytes) continue;  // it has an ACL
    EXPECT_EQ(*bytes, read_text(source_ / entry.path.c_str())) << entry.path.c_str();
    ++compared;
  }
  EXPECT_GT(compared, 10U);
}

// As a process finds it that begins between the rename and its note, or after a worker that was killed there.
TEST_F(ViewCopyTest, AReadWaitsForTheNoteOfARenamedCopy) {
  write_text(source_ / "small", "small");
  ASSERT_OK(copy_now());
  const ViewPlace place{folder_ / "live", "faces.2"};
  const auto made = ViewMap::make(place, map_->set(), map_->units(), folder_ / "renamed");
  ASSERT_OK(made);
  ViewMap& map = **made;
  map.set_here({0, map.units()});
  ViewReader later(*tree_, map);
  const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
  const ViewRange range{find(*tree_, "small"), 0, 5};
  EXPECT_EQ(later.read(range, buffer).outcome, Outcome::Missing);
  map.set_published(copy_.native());
  EXPECT_EQ(later.read(range, buffer).outcome, Outcome::Here);
  ViewMap::remove(place);
}

// Slow reads give the search for the best number of threads the time to try fewer.
TEST_F(ViewCopyTest, NoFileIsMissingWhereThreadsAreTakenOffTheCopy) {
  for (int i = 0; i < 1500; ++i) write_text(source_ / std::to_string(i / 500) / std::to_string(i), "small");
  hooks_.before_read = [](const std::string&, Bytes) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto copied = copy_now();
  ASSERT_OK(copied);
  EXPECT_EQ(copied->files, 1500U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ViewCopyTest, AFileThatChangesFailsAndTheOthersDoNot) {
  options_.threads = options_.depth = 1;
  write_text(source_ / "changes", noise(17 * kMiB, 1));
  write_text(source_ / "stays", noise(9 * kMiB, 2));
  bool is_changed = false;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (path != "changes" || offset < 16 * kMiB || std::exchange(is_changed, true)) return;
    write_text(source_ / "changes", noise(17 * kMiB, 3));
  };
  ASSERT_OK(copy_now());
  EXPECT_TRUE(is_changed);
  const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
  EXPECT_EQ(reader_->read({find(*tree_, "changes"), 0, 10}, buffer).outcome, Outcome::Failed);
  EXPECT_EQ(whole("stays"), noise(9 * kMiB, 2));
}

TEST_F(ViewCopyTest, AnAttemptThatResumesShowsWhatWasThere) {
  options_.threads = options_.depth = 1;
  options_.io = IoKind::Threads;
  write_text(source_ / "large", noise(40 * kMiB, 1));
  write_text(source_ / "small", "small");
  hooks_.before_read = [&](const std::string&, Bytes offset) {
    if (offset >= 32 * kMiB) stop_ = true;
  };
  EXPECT_KIND(copy_now(), Errc::Cancelled);
  const auto before = std::move(map_);
  ASSERT_TRUE(before);
  stop_ = false;
  std::optional<Outcome> at_once, later;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (path != "large") return;
    const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
    if (!at_once) at_once = reader_->read({find(*tree_, "large"), 0, 10}, buffer).outcome;
    later = reader_->read({find(*tree_, "large"), offset, 10}, buffer).outcome;
  };
  ASSERT_OK(copy_now());
  EXPECT_EQ(at_once, Outcome::Here);
  EXPECT_EQ(later, Outcome::Missing);
  EXPECT_EQ(before->unit(0), UnitState::Here) << "the set has one map for all attempts";
  EXPECT_EQ(whole("large"), noise(40 * kMiB, 1));
}

struct NoPeers final : Exchange {
  std::function<void()> copied;

  void begin(const SetOrigin&) override {}
  Result<Walked> walk(const Walk& own) override { return own(); }
  Result<> copy(ExchangeJob&) override {
    copied();
    return {};
  }
  bool is_published_elsewhere(const std::string&) override { return false; }
};

TEST_F(ViewCopyTest, WhileTheSourceIsAwayWhatWasHereStaysReadable) {
  options_.threads = options_.depth = 1;
  options_.io = IoKind::Threads;
  write_text(source_ / "large", noise(40 * kMiB, 1));
  std::atomic<unsigned> checks = 0;
  is_still_so_ = [&]() -> Result<> {
    ++checks;
    return {};
  };
  hooks_.before_read = [&](const std::string&, Bytes offset) {
    if (offset < 32 * kMiB) return;
    for (int i = 0; map_->unit(0) != UnitState::Here && i < 10'000; ++i) usleep(1000);
    stop_ = true;
  };
  EXPECT_KIND(copy_now(), Errc::Cancelled);
  stop_ = false;
  hooks_.before_read = nullptr;
  const unsigned checked = checks;
  std::optional<UnitState> first, last;
  NoPeers peers;
  peers.copied = [&] {
    first = map_->unit(0);
    last = map_->unit(map_->units() - 1);
  };
  options_.exchange = &peers;
  options_.is_source_away = true;
  EXPECT_KIND(copy_now(), Errc::Unavailable);
  EXPECT_EQ(first, UnitState::Here);
  EXPECT_EQ(last, UnitState::Missing);
  EXPECT_EQ(checks, checked) << "the device may not answer";
}

TEST_F(ViewCopyTest, WhileTheSourceIsAwayNoViewBegins) {
  write_text(source_ / "large", noise(9 * kMiB, 1));
  NoPeers peers;
  peers.copied = [] {};
  options_.exchange = &peers;
  options_.is_source_away = true;
  EXPECT_KIND(copy_now(), Errc::Unavailable);
  EXPECT_FALSE(tree_);
}

// The worker was killed after the rename. The next one finds the copy complete, and reads nothing.
TEST_F(ViewCopyTest, AnAttemptThatFindsTheCopyPublishedShowsIt) {
  write_text(source_ / "large", noise(9 * kMiB, 1));
  std::optional<CopyViewer> killed;
  killed.emplace(place_, "faces", folder_ / ".copy.spark-partial/data", is_still_so_,
                 ViewReports{[this](Bytes, std::uint64_t) { begun(); }});
  options_.viewer = &*killed;
  ASSERT_OK(copy_with(hooks_, source_, copy_, options_, kQuiet, stop_));
  map_->withdraw({0, map_->units()});
  EXPECT_FALSE(whole("large"));
  CopyViewer next(place_, "faces", folder_ / ".copy.spark-partial/data", {}, {});
  next.published(copy_, folder_ / ".copy.spark-manifest");
  EXPECT_EQ(whole("large"), noise(9 * kMiB, 1));
}

TEST_F(ViewCopyTest, ACopyOfAnotherSetIsNotShown) {
  write_text(source_ / "large", noise(9 * kMiB, 1));
  CopyViewer killed(place_, "faces", folder_ / ".copy.spark-partial/data", is_still_so_,
                    {[this](Bytes, std::uint64_t) { begun(); }});
  options_.viewer = &killed;
  ASSERT_OK(copy_with(hooks_, source_, copy_, options_, kQuiet, stop_));
  map_->withdraw({0, map_->units()});
  write_text(source_ / "large", noise(9 * kMiB, 2));
  options_.viewer = nullptr;
  ASSERT_OK(copy_with(hooks_, source_, copy_, options_, kQuiet, stop_));
  CopyViewer next(place_, "faces", folder_ / ".copy.spark-partial/data", {}, {});
  next.published(copy_, folder_ / ".copy.spark-manifest");
  EXPECT_EQ(map_->reason(), kHasChanged);
  EXPECT_FALSE(whole("large"));
}

// A reader of the last file's middle: its piece comes next, then the rest of that file, then the others.
TEST_F(ViewCopyTest, WhatAReaderWaitsForGoesFirst) {
  options_.threads = options_.depth = 1;
  options_.io = IoKind::Threads;
  for (const char* name : {"a", "b", "c"}) write_text(source_ / name, noise(32 * kMiB, 1));
  std::vector<std::string> order;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (offset % kHashPiece != 0) return;
    order.push_back(path + std::to_string(offset / kHashPiece));
    reader_->want({find(*tree_, "c"), 17 * kMiB, 10}, *map_);
  };
  ASSERT_OK(copy_now());
  ASSERT_EQ(order.size(), 12U);
  const auto wanted = std::ranges::find(order, "c2");
  ASSERT_LT(wanted - order.begin(), 8) << "else it would be the tenth";
  EXPECT_EQ(std::vector(wanted, wanted + 4), (std::vector<std::string>{"c2", "c3", "c0", "c1"}));
}

TEST_F(ViewCopyTest, ASmallFileThatAReaderWaitsForGoesFirst) {
  options_.threads = options_.depth = 1;
  for (unsigned i = 1000; i < 1300; ++i) write_text(source_ / std::to_string(i), std::to_string(i));
  std::vector<std::string> order;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (order.empty()) reader_->want({find(*tree_, "1290"), 0, 10}, *map_);
    order.push_back(path);
  };
  ASSERT_OK(copy_now());
  EXPECT_EQ(order.size(), 300U);
  const auto wanted = std::ranges::find(order, "1290");
  EXPECT_LE(wanted - order.begin(), 8) << "after those that were read at that moment";
  EXPECT_EQ(std::vector(wanted + 1, wanted + 4), (std::vector<std::string>{"1288", "1289", "1291"}));
  EXPECT_EQ(whole("1290"), "1290");
  EXPECT_EQ(whole("1100"), "1100");
}

// What another host writes meanwhile is not shown: its mark is checked first.
TEST_F(ViewCopyTest, AnotherStateOfTheSourceEndsTheCopyAndShowsNothing) {
  options_.threads = options_.depth = 1;
  write_text(source_ / "large", noise(10 * kHashPiece, 1));
  std::atomic<unsigned> checks = 0;
  is_still_so_ = [&]() -> Result<> {
    ++checks;
    return fail(Errc::Unavailable, "another host writes");
  };
  Bytes last = 0;
  hooks_.before_read = [&](const std::string&, Bytes offset) {
    for (std::uint64_t unit = 0; unit < map_->units(); ++unit)
      EXPECT_EQ(map_->unit(unit), UnitState::Missing);
    last = offset;
    if (offset < kHashPiece) return;
    for (int i = 0; checks == 0 && i < 10'000; ++i) usleep(1000);
    usleep(50'000);
  };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message(), "another host writes");
  EXPECT_EQ(checks, 1U);
  EXPECT_LT(last, 9 * kHashPiece);
}

TEST_F(ViewCopyTest, WhileTheStateOfTheSourceIsNotKnownReadersWait) {
  options_.threads = options_.depth = 1;
  write_text(source_ / "large", noise(3 * kHashPiece, 1));
  std::atomic<unsigned> checks = 0;
  is_still_so_ = [&]() -> Result<> {
    if (++checks > 1) return {};
    Error away{Errc::Unavailable, "reading the superblock: timed out", ""};
    away.is_of_source = true;
    return fail(std::move(away));
  };
  bool is_missing = false, came = false;
  hooks_.before_read = [&](const std::string&, Bytes offset) {
    if (offset != 2 * kHashPiece) return;
    for (int i = 0; checks == 0 && i < 10'000; ++i) usleep(1000);
    is_missing = map_->unit(0) == UnitState::Missing;
    for (int i = 0; !came && i < 10'000; ++i) {
      usleep(1000);
      came = map_->unit(0) == UnitState::Here;
    }
  };
  ASSERT_OK(copy_now());
  EXPECT_TRUE(is_missing);
  EXPECT_TRUE(came);
  EXPECT_GT(checks, 1U);
}

TEST_F(ViewCopyTest, ASetWithAclsOnFoldersHasNoView) {
  write_text(source_ / "a/file", "x");
  // user::rwx user:65534:r-x group::r-x mask::r-x other::---
  const unsigned char acl[] = {2, 0,   0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  5,
                               0, 254, 255, 0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                               5, 0,   255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  ASSERT_EQ(::setxattr((source_ / "a").c_str(), "system.posix_acl_access", acl, sizeof acl, 0), 0);
  ASSERT_OK(copy_now());
  EXPECT_FALSE(tree_);
  EXPECT_NE(no_view_.find("source/a has an ACL"), std::string::npos) << no_view_;
}

}  // namespace
}  // namespace spark::staging::test
