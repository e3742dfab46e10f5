// Peers with published copies send pieces of a large file, of which only the whole file's hash is known.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
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

}  // namespace
