// A volume of an NFS server, and taking it down while the server is silent.
#include <algorithm>

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "daemon/log.hpp"
#include "daemon/volumes/attachment/nfs_attachment.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::Contains;
using testing::HasSubstr;

class NfsVolumeTest : public VolumeTest {
 protected:
  NfsVolumeTest() {
    settings.nvme.reset();
    settings.nfs = config::NfsSource{"10.0.0.9", "/data"};
    target.reset();
  }
};

TEST(NfsConnections, AreOnePerCpuUpToEightUnlessTheOptionsSayOtherwise) {
  using Options = std::vector<std::string>;
  EXPECT_EQ(with_connections({"vers=4.2"}, 20), (Options{"vers=4.2", "nconnect=8"}));
  EXPECT_EQ(with_connections({}, 2), (Options{"nconnect=2"}));
  EXPECT_EQ(with_connections({}, 1), Options{});
  EXPECT_EQ(with_connections({"nconnect=1"}, 20), Options{"nconnect=1"});
  EXPECT_EQ(with_connections({"proto=rdma"}, 20), Options{"proto=rdma"});
}

TEST_F(NfsVolumeTest, IsReadyOnlyOnceItsServerHasAnswered) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, Contains("probe"));
}

TEST_F(NfsVolumeTest, AMountWithAnotherAccessThanConfiguredIsNotAdopted) {
  world.mount("/mnt/data", settings.access != config::Access::ReadOnly, 7, "10.0.0.9:/data", "nfs4");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr(" already - unmount it, and remove its fstab line"));
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(NfsVolumeTest, IsStalledWhileItsServerIsSilent) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.answers = false;
  ASSERT_TRUE(becomes(State::Stalled));
  world.answers = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().history.reconnects(), 1u);
}

// The volume of that name was exclusive, and taken over, a moment ago.
TEST_F(NfsVolumeTest, TheRecordOfAnEarlierVolumeOfItsNameHasNoEffect) {
  const auto late = clock.wall() + std::chrono::seconds(30);
  world.records[Record::LateWrites] = {
      {"until_s", std::chrono::floor<std::chrono::seconds>(late).time_since_epoch().count()}};
  start();
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

class SilentServerTest : public NfsVolumeTest {
 protected:
  Result<> ask_down(OnDown on_down = OnDown::Disconnect) {
    return await(context, volume->requests().keep_down("alice", on_down))
        .value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
  void stall() {
    start();
    ASSERT_TRUE(becomes(State::Ready));
    world.answers = false;
    ASSERT_TRUE(becomes(State::Stalled));
  }
};

TEST_F(SilentServerTest, UnwrittenDataIsSentBeforeTheUnmount) {
  settings.access = config::Access::Exclusive;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.touched.clear();
  ASSERT_TRUE(ask_down());
  const auto at = [&](const char* step) { return std::ranges::find(world.touched, step); };
  ASSERT_NE(at("flush"), world.touched.end());
  EXPECT_LT(at("flush"), at("unmount"));
}

TEST_F(SilentServerTest, ForceDuringAFlushToAServerThatAnswersWaitsForNothing) {
  settings.access = config::Access::Exclusive;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.flush_waits = true;
  std::optional<Result<>> first;
  auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked.requests().keep_down("alice");
  };
  boost::asio::co_spawn(context, ask(*volume, first), boost::asio::detached);
  ASSERT_TRUE(run_until([&] { return world.count("flush") == 1; }));
  EXPECT_TRUE(ask_down(OnDown::Force));
  EXPECT_TRUE(run_until([&] { return first.has_value(); }));
  EXPECT_TRUE(*first);
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_EQ(world.count("force"), 1);
  world.flush_waits = false;
}

TEST_F(SilentServerTest, AServerThatIsSilentDuringTheFlushEndsTheDownAndForceIsNamed) {
  settings.access = config::Access::Exclusive;
  timings.flush_silence = Duration(5);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.flush_waits = true;
  world.while_flushing = [this] { world.answers = false; };
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().hint, HasSubstr("--force"));
  EXPECT_EQ(world.count("unmount"), 0);
}

// As for a quota, or an export without room.
TEST_F(SilentServerTest, AFlushThatFailsNamesTheSecondDown) {
  settings.access = config::Access::Exclusive;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.flush_waits = true;
  world.touched.emplace_back("stop writing");
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().hint, HasSubstr("volumes down datasets` again unmounts it"));
  world.while_flushing = [this] { world.mounts.clear(); };
  EXPECT_TRUE(ask_down()) << "a person has unmounted it";
}

TEST_F(SilentServerTest, ForceEndsWithItsRequest) {
  ASSERT_NO_FATAL_FAILURE(stall());
  ASSERT_TRUE(ask_down(OnDown::Force));
  EXPECT_EQ(volume->requests().on_down(), OnDown::Disconnect);
}

TEST_F(SilentServerTest, DownIsRefusedAtOnceAndNamesForceAndTheLostWrites) {
  ASSERT_NO_FATAL_FAILURE(stall());
  for (const auto& down : {ask_down(), await(context, volume->requests().ask_down()).value_or(Result<>())}) {
    ASSERT_FALSE(down);
    EXPECT_EQ(down.error().kind, Errc::Refused);
    EXPECT_THAT(down.error().hint, HasSubstr("`sudo spark-stage volumes down datasets --force`"));
    EXPECT_THAT(down.error().hint, HasSubstr("writes that the server has not received are lost"));
  }
  EXPECT_EQ(world.count("record down") + world.count("unmount") + world.count("force"), 0);
  EXPECT_EQ(volume->status().state, State::Stalled);
}

TEST_F(SilentServerTest, ForceTakesTheVolumeDownUntilItIsBroughtUp) {
  ASSERT_NO_FATAL_FAILURE(stall());
  EXPECT_TRUE(ask_down(OnDown::Force));
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_EQ(world.count("force"), 1);
  EXPECT_EQ(world.count("unmount") + world.count("detach"), 0);
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_TRUE(world.intent->is_released);
  world.answers = true;
  EXPECT_TRUE(
      await(context, volume->requests().keep_up()).value_or(Result<>(fail(Errc::Failed, "no answer"))));
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(SilentServerTest, ForceIsLoggedWithItsOperator) {
  log::start();
  ASSERT_NO_FATAL_FAILURE(stall());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(ask_down(OnDown::Force));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("volume datasets: alice takes it down by force"));
}

TEST_F(SilentServerTest, AWorkerStuckInTheKernelDoesNotKeepADetachedVolumeUp) {
  ASSERT_NO_FATAL_FAILURE(stall());
  world.unmount_error = Error{Errc::TimedOut, "unmount did not end within 10 s", ""};
  world.while_unmounting = [this] { world.mounts.clear(); };
  EXPECT_TRUE(ask_down(OnDown::Force));
  EXPECT_EQ(volume->status().state, State::Down);
}

TEST_F(SilentServerTest, AMountThatForceCannotRemoveIsReportedAndTheVolumeStaysUp) {
  ASSERT_NO_FATAL_FAILURE(stall());
  world.unmount_error = Error{Errc::TimedOut, "unmount did not end within 10 s", ""};
  const auto down = ask_down(OnDown::Force);
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("did not end within 10 s"));
  EXPECT_TRUE(world.intent->up);
  EXPECT_TRUE(becomes(State::Stalled));
}

TEST_F(SilentServerTest, AnUnmountThatTimesOutNamesForce) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::TimedOut, "unmount did not end within 60 s", ""};
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().hint, HasSubstr("--force"));
}

TEST_F(SilentServerTest, ForceDuringAPendingUnmountCompletesBothRequests) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_takes = Duration(500);  // longer than it takes to ask again
  world.unmount_error = Error{Errc::TimedOut, "unmount did not end within 60 s", ""};
  world.while_unmounting = [this] {
    if (world.count("force") > 0) world.unmount_error.reset();
  };
  std::optional<Result<>> first;
  auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
    into = co_await asked.requests().keep_down("alice");
  };
  boost::asio::co_spawn(context, ask(*volume, first), boost::asio::detached);
  ASSERT_TRUE(run_until([&] { return world.count("unmount") == 1; }));
  EXPECT_TRUE(ask_down(OnDown::Force));
  EXPECT_TRUE(run_until([&] { return first.has_value(); }));
  EXPECT_TRUE(*first);
  EXPECT_EQ(volume->status().state, State::Down);
}

}  // namespace
}  // namespace spark::volumes
