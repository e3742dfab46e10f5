#include "fleet/serve/offers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <new>
#include <thread>

using namespace spark;
using namespace spark::fleet;

namespace {

constexpr SteadyTime kNow{std::chrono::hours(1)};

class EmptyOffer final : public Offer {
 public:
  SetState state() const override { return {}; }
  Result<UnitBody> read(std::uint64_t /*unit*/, const staging::IoBuffer& /*buffer*/) const override {
    return fail(Errc::NotFound, "empty");
  }
  bool is_current() const override { return true; }
  std::uint64_t files() const override { return has_files; }
  std::uint64_t has_files = 1;
};

// Counts the loads.
class CountedSource final : public OfferSource {
 public:
  std::atomic<int> loads{0}, at_once{0}, most_at_once{0};
  std::atomic<bool> is_there{true}, is_still_current{true};
  std::function<void(const std::string& set)> during_load;
  std::uint64_t files = 1;  // of each set

  Result<std::shared_ptr<Offer>> load(const std::string& set) override {
    ++loads;
    most_at_once = std::max(most_at_once.load(), ++at_once);
    if (during_load) during_load(set);
    --at_once;
    if (!is_there) return fail(Errc::NotFound, "not here");
    auto offer = std::make_shared<EmptyOffer>();
    offer->has_files = files;
    return offer;
  }
  SetState state(const std::string& /*set*/, NodeId /*from*/) override {
    SetState state;
    state.kind = SetState::Kind::Published;
    return state;
  }
  bool is_current(const std::string& /*set*/, const Offer& /*offer*/) const override {
    return is_still_current;
  }
};

// The offers that so many threads find, all of which ask before the first load ends.
std::vector<std::shared_ptr<Offer>> find_at_once(Offers& offers, CountedSource& source, int threads) {
  std::latch all_ask(threads);
  source.during_load = [&](const std::string& /*set*/) { all_ask.wait(); };
  std::vector<std::shared_ptr<Offer>> found(threads);
  std::vector<std::thread> running;
  for (auto& one : found)
    running.emplace_back([&] {
      all_ask.count_down();
      one = offers.find("a", kNow);
    });
  for (std::thread& thread : running) thread.join();
  source.during_load = nullptr;
  return found;
}

TEST(Offers, PeersThatAskForASetAtOnceCauseOneLoadAndShareItsResult) {
  CountedSource source;
  Offers offers(source);
  const auto found = find_at_once(offers, source, 20);
  EXPECT_EQ(source.loads, 1);
  for (const auto& one : found) EXPECT_TRUE(one && one == found.front());
  EXPECT_EQ(offers.find("a", kNow), found.front());
  EXPECT_EQ(source.loads, 1);
}

TEST(Offers, ASetThatIsNotHereIsNeverSearchedForTwiceAtOnceAndLaterSearchedForAgain) {
  CountedSource source;
  source.is_there = false;
  Offers offers(source);
  for (const auto& one : find_at_once(offers, source, 20)) EXPECT_FALSE(one);
  EXPECT_EQ(source.most_at_once, 1);
  const int before = source.loads;
  source.is_there = true;
  EXPECT_TRUE(offers.find("a", kNow));
  EXPECT_EQ(source.loads, before + 1);
}

TEST(Offers, TheLoadOfOneSetDoesNotHoldUpAnother) {
  CountedSource source;
  Offers offers(source);
  std::latch is_loading(1), other_found(1);
  source.during_load = [&](const std::string& set) {
    if (set == "b") return;
    is_loading.count_down();
    other_found.wait();
  };
  std::thread slow([&] { EXPECT_TRUE(offers.find("a", kNow)); });
  is_loading.wait();
  EXPECT_TRUE(offers.find("b", kNow));
  other_found.count_down();
  slow.join();
}

TEST(Offers, TheStateOfASetIsToldWhileItsListIsLoaded) {
  CountedSource source;
  Offers offers(source);
  std::latch is_loading(1), is_told(1);
  source.during_load = [&](const std::string& /*set*/) {
    is_loading.count_down();
    is_told.wait();
  };
  std::thread slow([&] { EXPECT_TRUE(offers.find("a", kNow)); });
  is_loading.wait();
  EXPECT_EQ(offers.state("a", 0).kind, SetState::Kind::Published);
  is_told.count_down();
  slow.join();
}

TEST(Offers, OneThatIsNoLongerCurrentIsFreedAlsoIfNoPeerAsksAgain) {
  CountedSource source;
  Offers offers(source);
  const std::weak_ptr<Offer> offer = offers.find("a", kNow);
  offers.drop_unused(kNow);
  EXPECT_FALSE(offer.expired());
  source.is_still_current = false;
  offers.drop_unused(kNow);
  EXPECT_TRUE(offer.expired());
}

TEST(Offers, OneThatIsNoLongerCurrentIsLoadedAgain) {
  CountedSource source;
  Offers offers(source);
  const auto first = offers.find("a", kNow);
  source.is_still_current = false;
  const auto second = offers.find("a", kNow);
  EXPECT_EQ(source.loads, 2);
  EXPECT_NE(first, second);
}

TEST(Offers, ALoadWithoutMemoryFindsNothingAndTheNextOneIsTried) {
  CountedSource source;
  Offers offers(source);
  source.during_load = [](const std::string& /*set*/) { throw std::bad_alloc(); };
  EXPECT_FALSE(offers.find("a", kNow));
  source.during_load = nullptr;
  EXPECT_TRUE(offers.find("a", kNow));
}

TEST(Offers, TheNinthSetTakesThePlaceOfTheOneUsedLongestAgo) {
  CountedSource source;
  Offers offers(source);
  std::vector<std::weak_ptr<Offer>> found;
  for (int i = 0; i < 8; ++i)
    found.push_back(offers.find(std::string(1, "abcdefgh"[i]), kNow + std::chrono::seconds(i)));
  offers.find("a", kNow + std::chrono::seconds(10));
  offers.find("i", kNow + std::chrono::seconds(11));
  EXPECT_FALSE(found[0].expired());
  EXPECT_TRUE(found[1].expired());
  EXPECT_FALSE(found[2].expired());
}

TEST(Offers, LongListsDoNotAddUp) {
  CountedSource source;
  source.files = 6'000'000;
  Offers offers(source);
  const std::weak_ptr<Offer> first = offers.find("a", kNow);
  EXPECT_FALSE(first.expired());
  const std::weak_ptr<Offer> second = offers.find("b", kNow);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
}

TEST(Offers, AListThatNobodyAsksForIsFreedAndOneInUseIsKept) {
  CountedSource source;
  Offers offers(source);
  const std::weak_ptr<Offer> unused = offers.find("a", kNow), used = offers.find("b", kNow);
  offers.find("b", kNow + std::chrono::minutes(2));
  offers.drop_unused(kNow + std::chrono::minutes(3));
  EXPECT_TRUE(unused.expired());
  EXPECT_FALSE(used.expired());
}

}  // namespace
