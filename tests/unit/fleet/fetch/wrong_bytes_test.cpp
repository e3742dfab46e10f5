// A peer in the middle of its own staging sends bytes that do not match their digest.
#include <gtest/gtest.h>

#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;

namespace {

struct TwoHosts {
  static constexpr Bytes kSize = 5 * kMiB;  // one piece
  const std::string key = new_key().value(), right = std::string(kSize, 'r');
  spark::test::TempFolder folder;
  FleetHost host{key, "nqn.host"}, peer{key, "nqn.peer"};
  staging::Source source{"set", folder / "source", {}};
  std::unique_ptr<Presence> presence;    // of the peer's staging
  std::function<void()> second_request;  // before it
  unsigned reads = 0;

  TwoHosts() {
    source.origin = "folder set";
    for (const char* name : {"source", "peer"}) std::filesystem::create_directories(folder / name);
    EXPECT_TRUE(write_file_atomically(source.path / "a", right));
    peer_has('w');
  }
  ~TwoHosts() { presence.reset(); }  // before its folder is gone

  void peer_has(char content) {
    EXPECT_TRUE(write_file_atomically(folder / "peer/a", std::string(kSize, content)));
  }
  // The peer stages the same set, and offers the file with its right digest.
  void begin_at_peer(const std::string& set, staging::Entries& entries) {
    auto board = Board::create(peer.boards(), set, folder / "peer", {1, 1, 0});
    ASSERT_TRUE(board) << board.error().message();
    staging::Manifest manifest;
    manifest.entries.swap(entries);
    EXPECT_TRUE(staging::write_manifest(Board::entries_of(peer.boards(), set), manifest));
    manifest.entries.swap(entries);
    (*board)->set_digest(0, staging::digest_of(right));
    (*board)->set_unit(0, UnitState::HasPiece);
    presence = std::make_unique<Presence>(std::move(*board));
  }
  Result<staging::CopyReport> stage() {
    const auto exchange = host.exchange({peer.address()});
    Disturbed disturbed(*exchange);
    disturbed.before_copy = [&](const staging::ExchangeJob& job) {
      begin_at_peer(disturbed.set, job.entries);
    };
    disturbed.before_read = [&](const std::string&, Bytes) {
      if (++reads == 2 && second_request) second_request();
    };
    staging::CopyOptions options;
    options.exchange = &disturbed;
    auto staged = host.cache()->stage(source, options, {}, StopFlag(false));
    if (!staged) return staged.take_error();
    for (std::string& said : exchange->warnings()) staged->report.warnings.push_back(std::move(said));
    return staged->report;
  }
};

TEST(WrongBytesTest, APeerThatWithdrawsThemIsNotBlamed) {
  TwoHosts hosts;
  hosts.second_request = [&] { hosts.presence->board().set_unit(0, UnitState::Absent); };
  const auto report = hosts.stage();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->warnings.empty()) << report->warnings.front();
  EXPECT_EQ(report->bytes_from_peers, 0u);
}

TEST(WrongBytesTest, APeerThatThenSendsTheRightOnesIsNotBlamed) {
  Bytes from_peer = 0;
  // A busy computer may hear nothing of the peer for so long that it reads the source instead.
  for (int attempt = 0; attempt < 5 && from_peer == 0; ++attempt) {
    TwoHosts hosts;
    hosts.second_request = [&] { hosts.peer_has('r'); };
    const auto report = hosts.stage();
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->warnings.empty()) << report->warnings.front();
    from_peer = report->bytes_from_peers;
  }
  EXPECT_EQ(from_peer, TwoHosts::kSize);
}

TEST(WrongBytesTest, APeerThatSendsThemAgainIsNamed) {
  TwoHosts hosts;
  const auto report = hosts.stage();
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_NE(report->warnings.front().find("peer peer sent wrong bytes of a"), std::string::npos);
  EXPECT_EQ(hosts.reads, 3u) << "twice from the peer, then from the source";
  EXPECT_EQ(report->bytes_from_peers, 0u);
}

}  // namespace
