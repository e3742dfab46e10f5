// One change of the whole cache at a time, and nothing staged while it is reset.
#include <fstream>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

class CachePlaceTest : public DatasetsTest {
 protected:
  void SetUp() override {
    const std::string waits = "until [ -e " + (worker.folder() / "go").native() + " ]; do sleep 0.02; done; ";
    for (const char* verb : {"move-cache", "reset-cache"})
      worker.on(verb,
                note_request(std::string(verb) + ".log") + waits + R"(echo '{"result": {"path": "/c"}}')");
    start();
  }
  CachePlace& place() { return datasets->cache_place(); }
  void go_on() { std::ofstream(worker.folder() / "go") << ""; }
  static void expect_refused(const Result<std::shared_ptr<Job>>& asked, const std::string& words) {
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().kind, Errc::Refused);
    EXPECT_THAT(asked.error().what, testing::HasSubstr(words));
  }
};

TEST_F(CachePlaceTest, DuringAMoveNoOtherOneAndNoResetBegins) {
  const auto moving = place().move("/new", LastCopies::Brought, {});
  ASSERT_TRUE(moving);
  expect_refused(place().move("/other", LastCopies::Brought, {}), "job 1 (cache-move) is not done yet");
  expect_refused(place().reset(ResetWish::Forget, {}), "job 1 (cache-move) is not done yet");
  EXPECT_TRUE(place().check_no_reset()) << "the cache is whole all the time";
  go_on();
  ASSERT_TRUE(ends(*moving));
  const auto again = place().move("/new", LastCopies::Brought, {});
  ASSERT_TRUE(again);
  EXPECT_TRUE(ends(*again));
}

// The daemon would stage where the copies are being brought.
TEST_F(CachePlaceTest, DuringAMoveTheCacheKeepsItsPath) {
  const std::string own = settings.cache.path.native();
  EXPECT_TRUE(place().check_path("/new"));
  const auto moving = place().move("/new", LastCopies::Discarded, {});
  ASSERT_TRUE(moving);
  const auto refused = place().check_path("/new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().what, testing::HasSubstr("job 1 (cache-move) is not done yet"));
  EXPECT_TRUE(place().check_path(own));
  go_on();
  ASSERT_TRUE(ends(*moving));
  EXPECT_TRUE(place().check_path("/new"));
  EXPECT_THAT(text_of("move-cache.log"), testing::HasSubstr(R"("discard":true)"));
}

// Each would delete or lock what the other one works on.
TEST_F(CachePlaceTest, AMoveAndARecoveryWaitForEachOther) {
  const std::string waits =
      "until [ -e " + (worker.folder() / "checked").native() + " ]; do sleep 0.02; done; ";
  worker.on("recover", waits + R"(echo '{"result": {}}')");
  const auto passes = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    run_until(context, [&] { return std::chrono::steady_clock::now() > end; });
  };
  const auto recover_elsewhere = [&](const char* path) {
    settings.cache.path = path;
    datasets->config_changed();
  };
  recover_elsewhere("/second");
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("recover") == 2; }));
  const auto cancelled = place().move("/new", LastCopies::Brought, {});
  ASSERT_TRUE(cancelled);
  passes(Duration(300));
  (*cancelled)->on_cancel();
  ASSERT_TRUE(ends(*cancelled)) << "although the recovery runs";
  EXPECT_EQ(kind_of(*cancelled), "cancelled");
  const auto moving = place().move("/new", LastCopies::Brought, {});
  ASSERT_TRUE(moving);
  passes(Duration(300));
  EXPECT_EQ(worker.calls("move-cache"), 0);
  std::ofstream(worker.folder() / "checked") << "";
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("move-cache") == 1; }));
  const int recoveries = worker.calls("recover");
  recover_elsewhere("/third");
  passes(Duration(300));
  EXPECT_EQ(worker.calls("recover"), recoveries);
  go_on();
  ASSERT_TRUE(ends(*moving));
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("recover") == recoveries + 2; }));
}

TEST_F(CachePlaceTest, DuringAResetNothingIsStaged) {
  const auto resetting = place().reset(ResetWish::DeleteCopies, {});
  ASSERT_TRUE(resetting);
  const auto going_on = place().check_no_reset();
  ASSERT_FALSE(going_on);
  EXPECT_EQ(going_on.error().kind, Errc::Unavailable);
  expect_refused(place().move("/new", LastCopies::Brought, {}), "job 1 (cache-reset) is not done yet");
  go_on();
  ASSERT_TRUE(ends(*resetting));
  EXPECT_TRUE(place().check_no_reset());
  EXPECT_THAT(text_of("reset-cache.log"), testing::HasSubstr(R"("wish":"delete_copies")"));
}

TEST_F(CachePlaceTest, AResetDoesOnlyWhatIsWished) {
  go_on();
  for (const ResetWish wish : {ResetWish::Nothing, ResetWish::Forget}) ends(*place().reset(wish, {}));
  const std::string asked = text_of("reset-cache.log");
  EXPECT_THAT(asked, testing::HasSubstr(R"("wish":"forget")"));
  EXPECT_THAT(asked, testing::Not(testing::HasSubstr("delete")));
}

}  // namespace
}  // namespace spark::datasets
