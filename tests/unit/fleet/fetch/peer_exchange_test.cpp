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

// All at once, as by one srun; the rate leaves them time to hear of each other.
TEST_F(PeerExchangeTest, HostsThatGetTheShardsOfAPublishedCopyTogetherExchangeThem) {
  constexpr int kFiles = 16, kHosts = 3;
  constexpr std::size_t kSize = 9 * kMiB;  // two pieces
  const std::filesystem::path shards = folder_ / "shards";
  std::filesystem::create_directories(shards);
  for (int i = 0; i < kFiles; ++i)
    ASSERT_TRUE(write_file_atomically(shards / std::to_string(i), std::string(kSize, static_cast<char>(i))));
  ASSERT_TRUE(other_.stage({"set", shards, {}}, {}));
  std::vector<std::unique_ptr<FleetHost>> hosts;
  for (int i = 0; i < kHosts; ++i)
    hosts.push_back(std::make_unique<FleetHost>(key_, "nqn." + std::to_string(i)));
  const auto get = [&](const FleetHost* self, FleetHost& host) {
    std::vector<PeerAddress> peers{other_.address()};
    for (const auto& one : hosts)
      if (one.get() != self) peers.push_back(one->address());
    staging::Source source{"set", "", {}};
    source.is_away = true;
    source.path = "peers:set";
    staging::CopyOptions options;
    options.rate.most = 40'000'000;
    const auto with = host.exchange(peers, true);
    const auto to = host.cache();
    options.exchange = with.get();
    EXPECT_TRUE(find_elsewhere(source, *to, *with));
    EXPECT_TRUE(to->stage(source, options, {}, StopFlag(false)));
    with->published();
  };
  std::vector<std::thread> threads;
  for (const auto& host : hosts) threads.emplace_back([&] { get(host.get(), *host); });
  for (std::thread& thread : threads) thread.join();
  const auto sent = other_.server().report()["served_bytes"].to_number<std::uint64_t>();
  EXPECT_LE(static_cast<double>(sent), 2.2 * kFiles * kSize) << "about 1.6; 3 without an exchange";
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
