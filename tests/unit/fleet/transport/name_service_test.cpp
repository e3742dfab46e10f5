#include "fleet/transport/name_service.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

using namespace spark;
using namespace spark::fleet;
using namespace std::chrono_literals;

namespace {

using Addresses = std::vector<std::string>;

TEST(NameService, FindsEachNameThatHasAddresses) {
  NameService names([](const std::string& name) -> Result<Addresses> {
    if (name == "none") return fail(Errc::Unavailable, "no such name");
    return Addresses{name + ".1", name + ".2"};
  });
  EXPECT_EQ(names.find({"a", "none", "b"}, 1h), (FoundNames{{"a", {"a.1", "a.2"}}, {"b", {"b.1", "b.2"}}}));
  EXPECT_EQ(names.find({}, 1h), FoundNames{});
  EXPECT_EQ(names.find(std::vector<std::string>(100, "a"), 1h).size(), 1u);
}

TEST(NameService, AddressesAreFoundWithoutANameService) {
  NameService names([](const std::string&) -> Result<Addresses> { return Addresses{"wrong"}; });
  EXPECT_EQ(names.find({"10.0.0.1", "fd00::1", "FD00:0::2"}, 1h),
            (FoundNames{{"10.0.0.1", {"10.0.0.1"}}, {"fd00::1", {"fd00::1"}}, {"FD00:0::2", {"fd00::2"}}}));
}

// Answers nothing until the test says so.
struct Away {
  std::shared_ptr<std::latch> may_end = std::make_shared<std::latch>(1);
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
  Result<Addresses> operator()(const std::string& name) const {
    ++*asked;
    if (name.starts_with("away")) may_end->wait();
    return Addresses{"10.0.0.1"};
  }
};

TEST(NameService, OneThatDoesNotAnswerIsWaitedForOnceForAllNamesAndAskedOnceForEach) {
  const Away away;
  NameService names(away);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(names.find({"away1", "here", "10.0.0.2"}, 100ms),
              (FoundNames{{"here", {"10.0.0.1"}}, {"10.0.0.2", {"10.0.0.2"}}}));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  EXPECT_EQ(*away.asked, 4) << "once for the name without an answer";
  away.may_end->count_down();
  EXPECT_EQ(names.find({"away1"}, 1h).size(), 1u) << "its late answer counts";
}

TEST(NameService, ANameThatIsNotFoundAnyMoreKeepsItsAddresses) {
  bool is_there = true;
  NameService names([&](const std::string&) -> Result<Addresses> {
    if (!is_there) return fail(Errc::Unavailable, "the name service does not answer");
    return Addresses{"10.0.0.1"};
  });
  const auto before = names.find({"a"}, 1h);
  is_there = false;
  EXPECT_EQ(names.find({"a"}, 1h), before);
}

}  // namespace
