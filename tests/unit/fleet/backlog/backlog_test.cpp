// What an exchange begins first.
#include "fleet/backlog/backlog.hpp"

#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;

namespace {

// Two large files and four small ones; "sparse" is not exchanged.
class BacklogTest : public testing::Test {
 protected:
  staging::CopyContext context_;
  staging::Entries entries_;
  staging::Resumed resumed_;
  std::vector<staging::Entry*> small_, large_, entry_of_;
  staging::ExchangeJob job_{context_, entries_, resumed_, small_, large_, staging::IoKind::Auto};
  Layout layout_;
  std::optional<Backlog> backlog_;

  BacklogTest() {
    for (const char* path : {"a", "b", "s0", "s1", "s2", "s3", "sparse"}) {
      staging::Entry entry;
      entry.path = path;
      const bool is_small = entry.path.view().size() == 2;
      entry.size = entry.allocated = is_small ? 1000 : 2 * staging::kHashPiece;
      if (entry.path.view() == "sparse") entry.allocated = kMiB;
      entries_.push_back(std::move(entry));
      (is_small ? small_ : large_).push_back(&entries_.back());
      entry_of_.push_back(&entries_.back());
      layout_.add(entries_.back().size);
    }
    layout_.finish();
    backlog_.emplace(job_, layout_, entry_of_);
  }
  void want_small(std::uint64_t file) {
    const std::uint64_t pack = layout_.pack_of(file);
    EXPECT_TRUE(backlog_->bring_forward({file, pack, pack + 1}, false));
  }
};

TEST_F(BacklogTest, SmallFilesThatReadersWaitForComeFirstInTheirPack) {
  want_small(4);
  want_small(5);
  std::vector<std::uint64_t> small{0, 1, 2, 3};
  EXPECT_EQ(backlog_->put_wanted_first(small), 2U);
  EXPECT_EQ(small, (std::vector<std::uint64_t>{2, 3, 0, 1}));
  backlog_->got(2);
  EXPECT_EQ(backlog_->put_wanted_first(std::span(small).subspan(1)), 1U);
  backlog_->got(3);
  EXPECT_FALSE(backlog_->bring_forward({5, layout_.pack_of(5), layout_.pack_of(5) + 1}, false))
      << "it is here";
}

TEST_F(BacklogTest, AFileWaitsForRoomOnlyIfAReaderWaitsForIt) {
  constexpr std::size_t kMany = 5000;
  EXPECT_FALSE(backlog_->waits_for_room(kMany));
  EXPECT_TRUE(backlog_->bring_forward({1, layout_.first_unit_of(1), layout_.first_unit_of(1) + 2}, false));
  EXPECT_TRUE(backlog_->waits_for_room(kMany));
  EXPECT_FALSE(backlog_->waits_for_room(100));
  EXPECT_FALSE(backlog_->take_file({0, kMany}, true));
  EXPECT_EQ(backlog_->take_file({0, 100}, true), 1U);
  EXPECT_FALSE(backlog_->waits_for_room(kMany));
}

TEST_F(BacklogTest, HostsThatGetAPublishedCopyBeginWithTheirShares) {
  for (NodeId host = 1; host < 20; ++host) {
    const NodeId other = host + 100;
    const auto order_of = [&](NodeId self, NodeId peer) {
      large_ = {&entries_[0], &entries_[1]};
      Backlog backlog(job_, layout_, entry_of_);
      backlog.spread(self, std::span(&peer, 1));
      std::vector<std::uint64_t> order;
      while (const auto file = backlog.take_file({0, 0}, false)) {
        order.push_back(*file);
        backlog.opened();
      }
      return order;
    };
    const auto here = order_of(host, other), there = order_of(other, host);
    const auto owner = [&](std::uint64_t file) { return owner_of(file, std::vector{host, other}); };
    if (owner(0) == owner(1)) continue;
    EXPECT_NE(here, there) << host;
    EXPECT_EQ(owner(here.front()), host);
  }
}

TEST_F(BacklogTest, WhatReadersWaitForStaysFirst) {
  for (NodeId self = 1; self < 20; ++self) {
    large_ = {&entries_[0], &entries_[1]};
    Backlog backlog(job_, layout_, entry_of_);
    EXPECT_TRUE(backlog.bring_forward({1, layout_.first_unit_of(1), layout_.first_unit_of(1) + 2}, false));
    backlog.spread(self, {});
    EXPECT_EQ(backlog.take_file({0, 0}, false), 1U);
  }
}

// One that has changed its size is copied whole before it counts as offered.
TEST_F(BacklogTest, TheNextFileIsOpenedWhileOneIsOffered) {
  EXPECT_EQ(backlog_->take_packs({0, 0}).size(), 1U);
  EXPECT_EQ(backlog_->take_file({0, 0}, false), 0U);
  EXPECT_FALSE(backlog_->take_file({0, 0}, false)) << "the first one is being opened";
  backlog_->opened();
  EXPECT_EQ(backlog_->take_file({0, 1}, false), 1U);
  backlog_->opened();
  EXPECT_FALSE(backlog_->is_empty());
  backlog_->offered();
  EXPECT_FALSE(backlog_->is_empty()) << "pieces of the other one may still come";
  backlog_->offered();
  EXPECT_TRUE(backlog_->is_empty());
}

TEST_F(BacklogTest, WhatIsNotExchangedIsHandedOver) {
  EXPECT_TRUE(large_.empty());
  EXPECT_FALSE(backlog_->bring_forward({6, layout_.first_unit_of(6), layout_.first_unit_of(6) + 2}, false));
  backlog_->left().add(entry_of_[3]);
  EXPECT_EQ(backlog_->left().take_rest(), (std::vector{entry_of_[3], entry_of_[6]}));
}

}  // namespace
