// What a host tells its peers while it stages.
#include "fleet/fetch/peer_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/serve/offer.hpp"
#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;

namespace {

class PeerExchangeTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  FleetHost host_{key_, "nqn.host"}, other_{key_, "nqn.other"};
  staging::Source source_{"set", folder_ / "source", {}};

  PeerExchangeTest() {
    std::filesystem::create_directories(source_.path);
    EXPECT_TRUE(write_file_atomically(source_.path / "a", std::string(5 * kMiB, 'a')));
    source_.state = "superblock 1";
    source_.is_still_so = [] { return Result<>{}; };
  }
  // How the host reads its source, as its peers are told while it copies.
  std::optional<SetState::Reads> told_by(PeerExchange& exchange) {
    std::optional<SetState::Reads> told;
    Disturbed disturbed(exchange);
    disturbed.before_read = [&](const std::string&, Bytes) {
      const auto offer = offer_of_board(host_.boards(), disturbed.set);
      if (offer) told = (*offer)->state().reads;
    };
    staging::CopyOptions options;
    options.exchange = &disturbed;
    const auto staged = host_.cache()->stage(source_, options, {}, StopFlag(false));
    EXPECT_TRUE(staged) << staged.error().message();
    return told;
  }
};

TEST_F(PeerExchangeTest, AHostSaysThatItReadsNormally) {
  EXPECT_EQ(told_by(*host_.exchange({})), SetState::Reads::Normally);
}

TEST_F(PeerExchangeTest, AHostWhoseStagingIsSlowSaysSo) {
  EXPECT_EQ(told_by(*host_.exchange({}, false, true)), SetState::Reads::Slowly);
}

TEST_F(PeerExchangeTest, AHostWithoutItsVolumeSaysThatItReadsNothing) {
  ASSERT_TRUE(other_.stage(source_, {}));
  source_.is_away = true;
  source_.path = folder_ / "gone";
  EXPECT_EQ(told_by(*host_.exchange({other_.address()}, true)), SetState::Reads::Never);
}

TEST_F(PeerExchangeTest, ADatasetWithoutASourceNamesTheOtherThatCopiesItsContent) {
  ASSERT_TRUE(other_.stage(source_, {}));
  source_.is_away = true;
  source_.path = folder_ / "gone";
  const auto exchange = host_.exchange({other_.address()}, true);
  Disturbed disturbed(*exchange);
  std::unique_ptr<Board> of_other;
  disturbed.before_copy = [&](staging::ExchangeJob&) {
    of_other = Board::create(host_.boards(), disturbed.set, "/x", {2, 2, 0}).value();
  };
  staging::CopyOptions options;
  options.exchange = &disturbed;
  const auto staged = host_.cache()->stage(source_, options, {}, StopFlag(false));
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().kind, Errc::Unavailable);
  EXPECT_THAT(staged.error().message(), testing::HasSubstr("another dataset of this host copies the same"));
}

}  // namespace
