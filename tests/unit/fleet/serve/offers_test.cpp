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

class EmptyOffer final : public Offer {
 public:
  SetState state() const override { return {}; }
  Result<UnitBody> read(std::uint64_t /*unit*/, const staging::IoBuffer& /*buffer*/) const override {
    return fail(Errc::NotFound, "empty");
  }
  bool is_current() const override { return true; }
};

// Counts the loads.
class CountedSource final : public OfferSource {
 public:
  std::atomic<int> loads{0}, at_once{0}, most_at_once{0};
  std::atomic<bool> is_there{true}, is_still_current{true};
  std::function<void(const std::string& set)> during_load;

  Result<std::shared_ptr<Offer>> load(const std::string& set) override {
    ++loads;
    most_at_once = std::max(most_at_once.load(), ++at_once);
    if (during_load) during_load(set);
    --at_once;
    if (!is_there) return fail(Errc::NotFound, "not here");
    return std::make_shared<EmptyOffer>();
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
      one = offers.find("a");
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
  EXPECT_EQ(offers.find("a"), found.front());
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
  EXPECT_TRUE(offers.find("a"));
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
  std::thread slow([&] { EXPECT_TRUE(offers.find("a")); });
  is_loading.wait();
  EXPECT_TRUE(offers.find("b"));
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
  std::thread slow([&] { EXPECT_TRUE(offers.find("a")); });
  is_loading.wait();
  EXPECT_EQ(offers.state("a", 0).kind, SetState::Kind::Published);
  is_told.count_down();
  slow.join();
}

TEST(Offers, OneThatIsNoLongerCurrentIsFreedAlsoIfNoPeerAsksAgain) {
  CountedSource source;
  Offers offers(source);
  const std::weak_ptr<Offer> offer = offers.find("a");
  offers.drop_outdated();
  EXPECT_FALSE(offer.expired());
  source.is_still_current = false;
  offers.drop_outdated();
  EXPECT_TRUE(offer.expired());
}

TEST(Offers, OneThatIsNoLongerCurrentIsLoadedAgain) {
  CountedSource source;
  Offers offers(source);
  const auto first = offers.find("a");
  source.is_still_current = false;
  const auto second = offers.find("a");
  EXPECT_EQ(source.loads, 2);
  EXPECT_NE(first, second);
}

TEST(Offers, ALoadWithoutMemoryFindsNothingAndTheNextOneIsTried) {
  CountedSource source;
  Offers offers(source);
  source.during_load = [](const std::string& /*set*/) { throw std::bad_alloc(); };
  EXPECT_FALSE(offers.find("a"));
  source.during_load = nullptr;
  EXPECT_TRUE(offers.find("a"));
}

}  // namespace
