#include "daemon/volumes/volume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/fake_volume_actions.hpp"

namespace spark::volumes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNqn[] = "raid5-data";
constexpr char kUuid[] = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

class VolumeTest : public testing::Test {
 protected:
  VolumeTest() {
    world.superblock.type = "ext4";
    world.superblock.uuid = kUuid;
    world.offer(kNqn, "10.0.0.5", 4420);
    settings.name = "datasets";
    settings.nvme = config::NvmeSource{"rose", kNqn, 1, "", ""};
    settings.mount = "/mnt/data";
    config::Target rose;
    rose.name = "rose";
    rose.portals = {{"10.0.0.5", 4420}};
    target = rose;
    pace.watch = pace.namespace_poll = Duration(1);
    pace.first_retry = pace.longest_retry = pace.refused_retry = Duration(2);
    pace.namespace_wait = Duration(20);
    pace.nfs_probe = Duration(0);
  }
  ~VolumeTest() override {
    if (volume) volume->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(200));
  }

  void start() {
    volume = std::make_shared<Volume>(
        context.get_executor(), settings, target, std::make_unique<FakeVolumeActions>(world), clock, pace,
        [this](const Volume& changed, State) { seen.push_back(changed.status().state); });
    volume->start();
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      context.restart();
      context.run_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  bool becomes(State state) {
    return run_until([&] { return volume->status().state == state; });
  }
  const std::string& reason() const { return volume->status().reason; }

  boost::asio::io_context context;
  SystemClock clock;
  FakeWorld world;
  config::Volume settings;
  std::optional<config::Target> target;
  Pace pace;
  std::vector<State> seen;
  std::shared_ptr<Volume> volume;
};

TEST_F(VolumeTest, ComesUpReadOnlyAfterDiscoveryConnectAndSuperblock) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, ElementsAre("discover", "connect", "superblock", "mount ro"));
  EXPECT_EQ(volume->status().filesystem_uuid, kUuid);
  EXPECT_EQ(volume->status().device, "/dev/nvme7n1");
  EXPECT_EQ(world.pinned->uuid, kUuid);
  EXPECT_EQ(volume->status().paths.at(0).state, "live");
}

TEST_F(VolumeTest, WaitsWithReasonAndNextAttemptForATargetThatIsNotThereAndNeedsNoHandWhenItComes) {
  world.target_up = false;
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().next_attempt && world.count("discover") > 2; }));
  EXPECT_EQ(volume->status().state, State::Waiting);
  EXPECT_THAT(reason(), HasSubstr("target rose unreachable"));
  world.target_up = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(reason(), "");
  EXPECT_FALSE(volume->status().next_attempt);
}

TEST_F(VolumeTest, ASubsystemThatIsNotOfferedToThisHostNamesTheAllowList) {
  world.offers.clear();
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("not offered to this host NQN") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Waiting);
  EXPECT_THAT(reason(), HasSubstr(std::string("add ") + FakeWorld::kHost));
  EXPECT_EQ(world.count("connect"), 0);
}

TEST_F(VolumeTest, ASubsystemOfferedAtAnotherPortSaysWhere) {
  world.offers.clear();
  world.offer(kNqn, "10.0.0.5", 4421);
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("10.0.0.5:4421") != std::string::npos; }));
  EXPECT_THAT(reason(), HasSubstr("not offered at 10.0.0.5:4420"));
  EXPECT_EQ(world.count("connect"), 0);
}

TEST_F(VolumeTest, ATargetWithoutDiscoveryIsConnectedDirectly) {
  world.has_discovery = false;
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AnotherFilesystemThanPinnedIsRefusedAndNeverMounted) {
  world.pinned = FilesystemIdentity{"ext4", "00000000-0000-0000-0000-000000000001"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("as at the first mount"));
  EXPECT_EQ(world.count("mount ro"), 0);
}

TEST_F(VolumeTest, AnotherFilesystemThanInTheConfigIsRefused) {
  settings.nvme->filesystem_uuid = "00000000-0000-0000-0000-000000000002";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("as in the config"));
}

TEST_F(VolumeTest, ANamespaceWithoutFilesystemIsRefused) {
  world.superblock = {};
  world.superblock.partition_table = "gpt";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("gpt partition table"));
}

TEST_F(VolumeTest, ReadOnlyIsRefusedWhileAnotherHostWritesAndComesUpWhenItHasStopped) {
  world.superblock.being_written = true;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("being written by another host"));
  world.superblock.being_written = false;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, ExclusiveWithoutMmpIsRefusedUnlessTheConfigSaysFenceNone) {
  settings.access = config::Access::Exclusive;
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("multi-mount protection"));
  EXPECT_EQ(world.count("mount rw"), 0);
  volume->stop();

  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("mount rw"), 1);
}

TEST_F(VolumeTest, WhatThisVersionCanNotSecureIsRefusedBeforeAnythingIsTouched) {
  target->tls_psk_file = "/etc/spark-stage/keys/psk";
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("TLS"));
  EXPECT_TRUE(world.touched.empty());
}

TEST_F(VolumeTest, ALinkThatComesBackIsTheSameMountAndAnOutage) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_EQ(volume->status().paths.at(0).state, "connecting");
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().reconnects, 1u);
  EXPECT_EQ(volume->status().recoveries, 0u);
  EXPECT_TRUE(volume->status().last_outage_s);
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumeTest, ADeviceThatIsGoneIsDetachedAndMountedAnew) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().recoveries == 1; }));
  EXPECT_THAT(seen, testing::Contains(State::Lost));
  EXPECT_THAT(seen, testing::Contains(State::Recovering));
  EXPECT_EQ(world.count("detach"), 1);
  EXPECT_EQ(world.count("mount ro"), 2);
  EXPECT_EQ(world.mounts.size(), 1u);
}

TEST_F(VolumeTest, AnotherFilesystemAfterALossIsRefused) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.uuid = "99999999-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.lose_device();
  EXPECT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumeTest, ARestartedDaemonFindsTheMountAgainAndTouchesNothingButTheSuperblock) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, ElementsAre("superblock"));
}

TEST_F(VolumeTest, ARestartedDaemonNeverCallsAFrozenMountReady) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.set_link("connecting");
  start();
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_TRUE(world.touched.empty());
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Ready)));
}

TEST_F(VolumeTest, AReadWriteMountOfAReadOnlyVolumeIsNotAdopted) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", false, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("read-write already"));
  EXPECT_EQ(world.mounts.size(), 1u);
}

TEST_F(VolumeTest, AForeignMountAtTheMountPointIsNeverTakenOff) {
  world.owners[55] = "a-local-drive";
  world.mount("/mnt/data", false, 55, "/dev/nvme0n1p2");
  world.mount_error = Error{Errc::Refused, "/mnt/data carries /dev/nvme0n1p2 already", "unmount it"};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("detach") + world.count("unmount"), 0);
}

TEST_F(VolumeTest, AnUnreadableMountTableChangesNothing) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mount_table_readable = false;
  world.mounts.clear();
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(volume->status().state, State::Ready);
}

class DownTest : public VolumeTest {
 protected:
  Result<> ask_down() {
    std::optional<Result<>> answer;
    auto ask = [](Volume& asked, std::optional<Result<>>& into) -> boost::asio::awaitable<void> {
      into = co_await asked.ask_down();
    };
    boost::asio::co_spawn(context, ask(*volume, answer), boost::asio::detached);
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(Result<>(fail(Errc::Failed, "no answer")));
  }
};

TEST_F(DownTest, UnmountsBeforeItDisconnectsAndStaysDownUntilAskedUp) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.touched.clear();
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(volume->status().state, State::Down);
  EXPECT_THAT(world.touched, ElementsAre("unmount", "disconnect"));
  EXPECT_TRUE(ask_down()) << "asking again finds it down";
  volume->ask_up();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, KeepsTheVolumeWhileItIsInUseAndSaysWhy) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error = Error{Errc::Refused, "/mnt/data is in use by python3 (pid 7)", "end it first"};
  const auto down = ask_down();
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().what, HasSubstr("python3"));
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(DownTest, KeepsAControllerThatAnotherVolumeNeeds) {
  world.shared = true;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_TRUE(ask_down());
  EXPECT_EQ(world.count("disconnect"), 0);
}

class NfsVolumeTest : public VolumeTest {
 protected:
  NfsVolumeTest() {
    settings.nvme.reset();
    settings.nfs = config::NfsSource{"10.0.0.9", "/data"};
    target.reset();
  }
};

TEST_F(NfsVolumeTest, IsMountedAndReadyOnlyOnceItsServerHasAnswered) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, testing::Contains("probe"));
}

TEST_F(NfsVolumeTest, StallsWhileItsServerIsSilent) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.server_answers = false;
  ASSERT_TRUE(becomes(State::Stalled));
  world.server_answers = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().reconnects, 1u);
}

}  // namespace
}  // namespace spark::volumes
