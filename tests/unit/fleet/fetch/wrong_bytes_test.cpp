// A peer in the middle of its own staging sends bytes that do not match their digest.
#include <gtest/gtest.h>

#include "fleet/fetch/digest.hpp"
#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;

namespace {

class WrongBytesTest : public testing::Test {
 protected:
  static constexpr Bytes kSize = 5 * kMiB;  // one piece
  const std::string key_ = new_key().value(), right_ = std::string(kSize, 'r');
  spark::test::TempFolder folder_;
  FleetHost host_{key_, "nqn.host"}, peer_{key_, "nqn.peer"};
  staging::Source source_{"set", folder_ / "source", {}};
  std::unique_ptr<Presence> staging_;     // of the peer
  std::function<void()> second_request_;  // before it
  unsigned reads_ = 0;

  WrongBytesTest() {
    source_.origin = "folder";
    for (const char* folder : {"source", "peer"}) std::filesystem::create_directories(folder_ / folder);
    EXPECT_TRUE(write_file_atomically(source_.path / "a", right_));
    peer_has('w');
  }
  ~WrongBytesTest() override { staging_.reset(); }  // before its folder is gone

  void peer_has(char content) {
    EXPECT_TRUE(write_file_atomically(folder_ / "peer/a", std::string(kSize, content)));
  }
  // The peer stages the same set, and offers the file with its right digest.
  void begin_at_peer(const std::string& set, staging::Entries& entries) {
    auto board = Board::create(peer_.boards(), set, folder_ / "peer", {1, 1, 0});
    ASSERT_TRUE(board) << board.error().message();
    staging::Manifest manifest;
    manifest.entries.swap(entries);
    EXPECT_TRUE(staging::write_manifest(Board::entries_of(peer_.boards(), set), manifest));
    manifest.entries.swap(entries);
    (*board)->set_digest(0, digest_of(reinterpret_cast<const std::byte*>(right_.data()), right_.size()));
    (*board)->set_unit(0, UnitState::HasPiece);
    staging_ = std::make_unique<Presence>(std::move(*board));
  }
  Result<staging::CopyReport> stage() {
    const auto exchange = host_.exchange({peer_.address()});
    Disturbed disturbed(*exchange);
    disturbed.before_copy = [&](const staging::ExchangeJob& job) {
      begin_at_peer(disturbed.set, job.entries);
    };
    disturbed.before_read = [&](const std::string&, Bytes) {
      if (++reads_ == 2 && second_request_) second_request_();
    };
    staging::CopyOptions options;
    options.exchange = &disturbed;
    auto staged = host_.cache()->stage(source_, options, {}, StopFlag(false));
    if (!staged) return staged.take_error();
    for (std::string& said : exchange->warnings()) staged->report.warnings.push_back(std::move(said));
    return staged->report;
  }
};

TEST_F(WrongBytesTest, APeerThatWithdrawsThemIsNotBlamed) {
  second_request_ = [&] { staging_->board().set_unit(0, UnitState::Absent); };
  const auto report = stage();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->warnings.empty()) << report->warnings.front();
  EXPECT_EQ(report->bytes_from_peers, 0u);
}

TEST_F(WrongBytesTest, APeerThatThenSendsTheRightOnesIsNotBlamed) {
  second_request_ = [&] { peer_has('r'); };
  const auto report = stage();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->warnings.empty()) << report->warnings.front();
  EXPECT_EQ(report->bytes_from_peers, kSize);
}

TEST_F(WrongBytesTest, APeerThatSendsThemAgainIsNamed) {
  const auto report = stage();
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_NE(report->warnings.front().find("peer peer sent wrong bytes of a"), std::string::npos);
  EXPECT_EQ(reads_, 3u) << "twice from the peer, then from the source";
  EXPECT_EQ(report->bytes_from_peers, 0u);
}

}  // namespace
