// Peers with published copies send pieces of a large file, of which only the whole file's hash is known.
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>

#include "staging/copy/partial/journal.hpp"
#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;

namespace {

class DamagedPeerTest : public testing::Test {
 protected:
  static constexpr Bytes kSize = 4 * staging::kHashPiece;
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  FleetHost damaged_{key_, "nqn.a"}, second_{key_, "nqn.b"}, third_{key_, "nqn.c"}, late_{key_, "nqn.d"};
  staging::Source source_{"set", folder_ / "source", {}};
  std::vector<std::string> warnings_;

  DamagedPeerTest() {
    source_.state = "superblock 1";
    source_.is_still_so = [] { return Result<>{}; };
    std::filesystem::create_directories(source_.path);
    for (const char* name : {"bad", "good"})
      EXPECT_TRUE(write_file_atomically(source_.path / name, std::string(kSize, name[0])));
    EXPECT_TRUE(damaged_.stage(source_, {}));
    EXPECT_TRUE(second_.stage(source_, {named("a", damaged_)}));
    EXPECT_TRUE(third_.stage(source_, {named("a", damaged_)}));
  }
  static PeerAddress named(const std::string& name, const FleetHost& host) {
    return {name, host.address().endpoints};
  }
  void damage(std::uint64_t piece) {
    const auto copy = staging::CacheFolder(damaged_.cache_path()).place("set", 1).path();
    std::fstream file(copy / "bad", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(piece * staging::kHashPiece)).put('x');
    EXPECT_TRUE(file.flush());
  }
  Result<staging::Staged> stage_late() {
    const auto exchange =
        late_.exchange({named("a", damaged_), named("b", second_), named("c", third_)}, source_.is_away);
    staging::CopyOptions options;
    options.exchange = exchange.get();
    auto staged = late_.cache()->stage(source_, options, {}, StopFlag(false));
    warnings_ = exchange->warnings();
    return staged;
  }
};

TEST_F(DamagedPeerTest, OnlyThePeerWithTheDamageIsBlamed) {
  for (std::uint64_t piece = 0; piece < 4; ++piece) damage(piece);
  const auto staged = stage_late();
  ASSERT_TRUE(staged) << staged.error().message();
  ASSERT_EQ(warnings_.size(), 1u) << "the peers without damage are not named";
  EXPECT_NE(warnings_.front().find("peer a sent wrong bytes of bad"), std::string::npos) << warnings_.front();
  EXPECT_GE(staged->report.bytes_from_peers, kSize) << "the other file at least";
}

TEST_F(DamagedPeerTest, OneDamagedPieceIsGotFromAnotherPeerAlsoWithoutTheSource) {
  damage(2);
  source_.is_away = true;
  const auto staged = stage_late();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_LE(warnings_.size(), 1u);
  for (const std::string& warning : warnings_) EXPECT_NE(warning.find("peer a sent"), std::string::npos);
}

// The pieces of `bad` that the next attempt takes over.
std::set<std::uint64_t> believed_in(const std::string& journal) {
  std::set<std::uint64_t> pieces;
  staging::parse_journal(journal, [&](const staging::JournalLine& line) {
    if (line.entry.path.view() != "bad") return;
    if (line.kind == staging::JournalLine::Kind::Started) pieces.clear();
    if (line.kind == staging::JournalLine::Kind::Piece) pieces.insert(line.piece);
  });
  return pieces;
}

// The next attempt trusts the journal: it would take over zeros from the new, empty file.
TEST_F(DamagedPeerTest, PiecesOfADiscardedFileAreTakenBackBeforeItIsWrittenAgain) {
  staging::CopyOptions options;
  options.threads = options.depth = 1;
  StopFlag stop(false);
  const auto partial = staging::CacheFolder(late_.cache_path()).partial("set");
  auto alone = late_.exchange({}, false);
  Disturbed first(*alone);
  std::mutex mutex;
  std::set<std::uint64_t> before;  // pieces
  first.before_read = [&](const std::string& file, Bytes offset) {
    const std::scoped_lock lock(mutex);
    if (file == "bad") before.insert(offset / staging::kHashPiece);
    if (before.size() == 4) stop = true;  // the others are written down
  };
  options.exchange = &first;
  ASSERT_FALSE(late_.cache()->stage(source_, options, {}, stop));
  alone.reset();
  const auto path = partial / "journal";
  const auto known = believed_in(read_file(path).value());
  ASSERT_FALSE(known.empty());
  for (std::uint64_t piece = 0; piece < 4; ++piece)
    if (!known.contains(piece)) damage(piece);

  const auto exchange = late_.exchange({named("a", damaged_)}, false);
  Disturbed second(*exchange);
  std::string journal;  // when a piece from before is read again
  second.before_read = [&](const std::string& file, Bytes offset) {
    const std::scoped_lock lock(mutex);
    if (file == "bad" && known.contains(offset / staging::kHashPiece) && journal.empty())
      journal = read_file(path).value();
  };
  options.exchange = &second;
  ASSERT_TRUE(late_.cache()->stage(source_, options, {}, StopFlag(false)));
  ASSERT_FALSE(journal.empty());
  EXPECT_TRUE(believed_in(journal).empty());
}

}  // namespace
