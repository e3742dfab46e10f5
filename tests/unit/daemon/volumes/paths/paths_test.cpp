// The paths of a volume: for a target with two portals, and with a path that existed before the daemon.
#include <gmock/gmock.h>

#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

class VolumePathsTest : public VolumeTest {
 protected:
  VolumePathsTest() { target->portals = {{kFirst, 4420}, {kSecond, 4420}}; }

  std::size_t live_paths() const {
    return static_cast<std::size_t>(std::ranges::count(volume->status().paths, "live", &PathStatus::state));
  }

  static constexpr char kFirst[] = "10.0.0.5", kSecond[] = "10.0.1.5";
};

TEST_F(VolumePathsTest, ConnectsEveryPortal) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(run_until([&] { return live_paths() == 2; }));
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumePathsTest, IsReadyOverOnePortalAndReportsTheErrorOfTheOther) {
  world.unreachable = {kSecond};
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until(
      [&] { return volume->status().paths.size() == 2 && !volume->status().paths[1].reason.empty(); }));
  EXPECT_EQ(volume->status().paths[1].state, "waiting");
  EXPECT_THAT(volume->status().paths[1].reason, HasSubstr("10.0.1.5 is out"));
  world.unreachable.clear();
  EXPECT_TRUE(run_until([&] { return live_paths() == 2; }));
}

TEST_F(VolumePathsTest, BecomesReadyOverTheSecondPortalIfTheFirstIsUnreachable) {
  world.unreachable = {kFirst};
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumePathsTest, APathAbandonedByTheKernelIsReconnectedWithoutAnOutage) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until([&] { return live_paths() == 2; }));
  const auto connects = world.count("connect");
  world.unplug(kFirst);
  ASSERT_TRUE(run_until([&] { return world.count("connect") > connects && live_paths() == 2; }));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_TRUE(volume->status().history.outages().empty());
}

TEST_F(VolumePathsTest, SilenceIsNotAnOutageUntilTheKernelHadTimeToFailOver) {
  target->options.keep_alive = std::chrono::seconds(0);
  timings.fail_over = std::chrono::milliseconds(500);
  start();
  ASSERT_TRUE(run_until([&] { return live_paths() == 2 && volume->status().state == State::Ready; }));
  const auto probes = world.count("probe");
  world.silent_probes = 6;
  ASSERT_TRUE(run_until([&] { return world.count("probe") > probes + 8; }));
  EXPECT_EQ(volume->status().state, State::Ready);
  EXPECT_TRUE(volume->status().history.outages().empty());
  world.silent_probes = 1'000'000;
  EXPECT_TRUE(becomes(State::Stalled)) << "both are silent";
}

TEST_F(VolumePathsTest, APathIsReconnectedEvenIfAnotherPathReusesItsControllersName) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until([&] { return live_paths() == 2; }));
  world.unreachable = {kFirst};
  world.next_controller = 7;  // the number of the first path
  world.controllers.clear();
  ASSERT_TRUE(run_until([&] { return live_paths() == 1; }));
  ASSERT_EQ(world.controllers.front().name, "nvme7");
  ASSERT_EQ(world.controllers.front().portal.address, kSecond);
  world.unreachable.clear();
  EXPECT_TRUE(run_until([&] { return live_paths() == 2; }));
}

TEST_F(VolumePathsTest, IsStalledOnlyWhenAllPathsAreDown) {
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().state == State::Ready && live_paths() == 2; }));
  world.controllers.front().state = "connecting";
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(volume->status().state, State::Ready);
  world.set_link("connecting");
  EXPECT_TRUE(becomes(State::Stalled));
}

TEST_F(VolumePathsTest, EachPathKeepsItsDifferences) {
  world.differences[kFirst] = {"keep_alive is 30, not 5"};
  start();
  ASSERT_TRUE(run_until([&] { return live_paths() == 2 && volume->status().state == State::Ready; }));
  EXPECT_EQ(volume->status().warnings.count(Warning::Connection), 1U);
}

// As an earlier `nvme connect` without it. The kernel may send data over either connection.
TEST_F(VolumePathsTest, AConnectionOverAnotherInterfaceThanTheConfiguredOneIsNamedUntilItIsGone) {
  target->options.interface = "fast0";
  start();
  ASSERT_TRUE(run_until([&] { return live_paths() == 2 && volume->status().state == State::Ready; }));
  for (auto& one : world.controllers) one.interface = "fast0";
  ASSERT_TRUE(run_until([&] { return !volume->status().warnings.contains(Warning::Connection); }));
  world.controllers[0].interface = "slow0";
  ASSERT_TRUE(run_until([&] { return volume->status().warnings.contains(Warning::Connection); }));
  EXPECT_THAT(volume->status().warnings.at(Warning::Connection),
              HasSubstr(world.controllers[0].name +
                        " at 10.0.0.5:4420 is not bound to interface fast0, but to slow0"));
}

class VolumeNamedTargetTest : public VolumeTest {
 protected:
  VolumeNamedTargetTest() {
    target->portals = {{"nas.lan", 4420}};
    world.names["nas.lan"] = "10.0.0.5";
    world.namespace_uuid = "cccccccc-0000-4000-8000-000000000000";
    timings.name_doubt = Duration(5);
  }
};

TEST_F(VolumeNamedTargetTest, IsReconnectedAtTheNewAddressWhileTheKernelRetriesTheOldOne) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  const auto attempts = world.count("connect");
  ASSERT_TRUE(run_until([&] { return world.count("connect") > attempts; })) << "the name is looked up again";
  EXPECT_EQ(world.controllers.size(), 1U);
  world.names["nas.lan"] = "10.0.0.7";
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until([&] { return world.controllers.size() == 1; })) << "the old address is left";
  EXPECT_EQ(world.controllers.front().portal.address, "10.0.0.7");
  EXPECT_EQ(world.count("mount ro"), 1);
  ASSERT_EQ(volume->status().history.outages().size(), 1U)
      << volume->status().history.outages().back().reason;
  EXPECT_EQ(volume->status().history.outages().back().healer, Healer::Us);
}

TEST_F(VolumeNamedTargetTest, APersonsPathStaysWhileItReconnects) {
  world.offer(kNqn, "10.0.0.8", 4420);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const std::string by_hand = world.plug_in(kNqn, {"10.0.0.8", 4420});
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  world.set_link("connecting");
  world.names["nas.lan"] = "10.0.0.7";
  ASSERT_TRUE(run_until([&] { return world.count("disconnect") > 0; })) << "the old address is left";
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  ASSERT_EQ(world.controllers.size(), 2U);
  EXPECT_EQ(world.controllers.front().name, by_hand);
}

TEST_F(VolumeNamedTargetTest, TheNewAddressIsNotUsedIfTheNamespaceHasNoUuid) {
  world.namespace_uuid.clear();
  start();
  ASSERT_TRUE(becomes(State::Ready));
  const auto attempts = world.count("connect");
  world.names["nas.lan"] = "10.0.0.7";
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world.count("connect"), attempts);
}

TEST_F(VolumeTest, AnExistingConnectionIsTakenOverOnceWithoutDelayingTheVolume) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  timings.watch = Duration(2);
  std::optional<State> meanwhile;
  world.while_connecting = [&] { meanwhile = volume->status().state; };
  start();
  ASSERT_TRUE(run_until([&] { return world.count("connect") == 1; }));
  EXPECT_EQ(meanwhile, State::Ready);
  context.restart();
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(world.count("connect"), 1);
  EXPECT_EQ(world.count("mount ro"), 0);
}

}  // namespace
}  // namespace spark::volumes
