// How a volume comes up, is lost, and is taken down.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(VolumeTest, ComesUpReadOnlyAfterDiscoveryConnectAndSuperblock) {
  pace.probe_reader = std::chrono::hours(1);
  pace.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched,
              ElementsAre("discover", "connect", "superblock", "mount ro", "probe", "smart nvme7"));
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

TEST_F(VolumeTest, AFailedConnectNamesTheAddressThatTheLogHasForIt) {
  world.offers.clear();
  world.offer(kNqn, "192.168.7.7", 4420);
  world.connect_error = Error{Errc::Unavailable, "nobody answers", ""};
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("nobody answers") != std::string::npos; }));
  EXPECT_THAT(reason(), HasSubstr("192.168.7.7:4420"));
  world.connect_error.reset();
  EXPECT_TRUE(becomes(State::Ready))
      << "many targets list an address that is not the one they are reached at";
}

TEST_F(VolumeTest, ATargetWithoutDiscoveryIsConnectedDirectly) {
  world.has_discovery = false;
  start();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AnotherFilesystemThanPinnedIsRefusedAndNeverMounted) {
  world.pinned = FilesystemIdentity{"ext4", "00000000-0000-0000-0000-000000000001", 0, ""};
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

TEST_F(VolumeTest, AnEmptyNamespaceIsRefusedAndSaysWhoCanMakeAFileSystem) {
  world.superblock = {};
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(),
              HasSubstr("holds no file system - `sudo spark-stage volumes format datasets` makes one, on"));
}

TEST_F(VolumeTest, APartitionTableIsNoFilesystem) {
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

TEST_F(VolumeTest, ATargetWithTlsIsAskedNothingInClearText) {
  target->tls_psk_file = "/etc/spark-stage/keys/psk";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("discover"), 0);
}

TEST_F(VolumeTest, ADeviceThatIsGoneIsDetachedAndMountedAnew) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
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

TEST_F(VolumeTest, AConnectionThatSomebodyElseMadeIsTakenOverWithOurTimers) {
  world.plug_in(kNqn);
  target->reconnect_delay = std::chrono::seconds(7);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("discover"), 0) << "it is there";
  EXPECT_EQ(world.count("connect"), 1);
  EXPECT_EQ(world.last_options.reconnect_delay, std::chrono::seconds(7));
  EXPECT_EQ(volume->status().paths.size(), 1U);
}

TEST_F(VolumeTest, TakingAConnectionOverCanFailWithoutHarmUnlessItIsRefused) {
  world.plug_in(kNqn);
  world.connect_error = Error{Errc::Unavailable, "no answer", ""};
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(VolumeTest, AnotherProgramsConnectionStaysWhenTheVolumeGoesDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.controllers.front().owner = "stas";
  EXPECT_TRUE(await(context, volume->ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  EXPECT_EQ(world.count("disconnect"), 0);
  EXPECT_EQ(world.count("unmount"), 1);
}

TEST_F(VolumeTest, WhatTheTargetTellsEndsTheWaitForTheNextAttempt) {
  pace.first_retry = pace.longest_retry = std::chrono::hours(1);
  world.offers.clear();
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().next_attempt.has_value(); }));
  world.offer(kNqn, "10.0.0.5", 4420);
  volume->try_now();
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(VolumeTest, ARestartedDaemonFindsTheMountAgainAndTakesItsConnectionOver) {
  pace.probe_reader = std::chrono::hours(1);
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  pace.probe = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_THAT(world.touched, ElementsAre("superblock", "probe", "smart nvme7", "connect"));
}

TEST_F(VolumeTest, WhatWasMountedBeforeIsPinnedAsIfItHadBeenMountedByUs) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.superblock.stamp = 9;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(world.pinned);
  EXPECT_EQ(world.pinned->uuid, kUuid);
  EXPECT_EQ(world.pinned->stamp, 9u);
  EXPECT_TRUE(volume->status().warnings.empty());
}

TEST_F(VolumeTest, AReadersMountThatMayHaveReplayedAJournalIsUsedWithAWarning) {
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  world.mounts.back().super_options = "ro";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_FALSE(volume->status().warnings.empty());
  EXPECT_THAT(volume->status().warnings.back(), HasSubstr("was mounted by somebody else"));
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
  std::erase(world.touched, "probe");  // one may have been due
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

TEST_F(NfsVolumeTest, AMountWithAnotherAccessThanConfiguredIsNotAdopted) {
  world.mount("/mnt/data", settings.access != config::Access::ReadOnly, 7, "10.0.0.9:/data", "nfs4");
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("already, and not by spark-stage"));
  EXPECT_EQ(world.count("unmount"), 0);
}

TEST_F(NfsVolumeTest, StallsWhileItsServerIsSilent) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.answers = false;
  ASSERT_TRUE(becomes(State::Stalled));
  world.answers = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().history.reconnects(), 1u);
}

}  // namespace
}  // namespace spark::volumes
