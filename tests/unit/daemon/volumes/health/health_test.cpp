// Health problems of a mounted volume, and its reactions.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::HasSubstr;

TEST_F(VolumeTest, AReturningLinkKeepsTheMountAndCountsAsAnOutage) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_EQ(volume->status().paths.at(0).state, "connecting");
  world.set_link("live");
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().history.reconnects(), 1u);
  EXPECT_EQ(volume->status().history.recoveries(), 0u);
  EXPECT_TRUE(volume->status().history.last_outage_s());
  EXPECT_EQ(world.count("mount ro"), 1);
}

TEST_F(VolumeTest, AReturningLinkIsNotReadyWhileTheKernelMayStillRemoveTheDevice) {
  timings.link_doubt = Duration(60'000);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  seen.clear();
  const auto probes = world.count("probe");
  world.set_link("live");
  ASSERT_TRUE(run_until([&] { return world.count("probe") > probes + 2; }));
  EXPECT_THAT(reason(), HasSubstr("the link is back"));
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_LT(std::ranges::find(seen, State::Lost), std::ranges::find(seen, State::Ready));
  EXPECT_EQ(volume->status().history.outage_count(), 1U);
  EXPECT_EQ(volume->status().history.reconnects(), 0U);
}

TEST_F(VolumeTest, OneFailedLinkCheckDoesNotStallTheVolume) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  timings.watch = Duration(1);
  const auto looks = [&](const std::string& state) {
    world.set_link(state);
    context.restart();
    context.run_one();
  };
  for (int i = 0; i < 20; ++i) {
    looks("resetting");
    looks("live");
    looks("live");
  }
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Stalled)));
}

TEST_F(VolumeTest, AVolumeWithALiveLinkIsStalledWhileItsDeviceIsSilent) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.answers = false;
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_THAT(reason(), HasSubstr("does not answer, although its link is up"));
  world.answers = true;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().history.reconnects(), 1U);
}

TEST_F(VolumeTest, OneSlowProbeDoesNotStallTheVolume) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  for (int i = 0; i < 10; ++i) {
    const auto probes = world.count("probe");
    world.silent_probes = 1;
    ASSERT_TRUE(run_until([&] { return world.count("probe") > probes + 2; }));
  }
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Stalled)));
}

TEST_F(VolumeTest, NoProbeIsStartedWhileAWorkerHangsInTheKernel) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.answers = false;
  world.stuck = true;
  ASSERT_TRUE(becomes(State::Stalled));
  const auto probes = world.count("probe");
  const unsigned looks = world.io_looks;
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world.count("probe"), probes);
  EXPECT_EQ(world.io_looks, looks) << "300 stalled volumes would keep the thread busy";
  world.answers = true;
  world.stuck = false;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, TheDeviceIsNotReadOrMountedWhileAWorkerHangsInTheKernel) {
  world.stuck = true;
  start();
  ASSERT_TRUE(run_until([&] {
    return world.count("discover") > 0 && reason().find("waits in the kernel") != std::string::npos;
  }));
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world.count("superblock") + world.count("mount ro"), 0);
  world.stuck = false;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AProbeQueuedBehindABusyWriterDoesNotStallTheVolume) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.io_per_look = 1;
  world.answers = false;
  ASSERT_TRUE(run_until([&, probes = world.count("probe")] { return world.count("probe") > probes + 5; }));
  world.stuck = true;
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_THAT(seen, testing::Not(testing::Contains(State::Stalled)));
  EXPECT_EQ(volume->status().history.outage_count(), 0U);
  world.io_per_look = 0;
  EXPECT_TRUE(becomes(State::Stalled)) << "nothing comes back any more";
}

TEST_F(VolumeTest, AFileSystemBlockedByOtherProgramsIsNeitherStalledNorShutDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  seen.clear();
  world.mount_answers = false;
  ASSERT_TRUE(run_until([&, probes = world.count("probe")] { return world.count("probe") > probes + 5; }));
  EXPECT_TRUE(seen.empty());
}

TEST_F(VolumeTest, AVolumeIsNotProbedWhileItsLinkIsDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  const auto probes = world.count("probe");
  context.restart();
  context.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world.count("probe"), probes);
}

TEST_F(VolumeTest, TheProbeLatencyIsShown) {
  world.probe_us = 321;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(volume->status().probes.percentile(0.99), 321);
}

TEST_F(VolumeTest, TheTargetsSmartDataAndItsWarningsAreShown) {
  world.smart = nvmetcp::Smart{{"read-only"}, 41, 90, 7, 2};
  start();
  ASSERT_TRUE(run_until([&] { return volume->status().drives.has_value(); }));
  EXPECT_EQ(volume->status().drives->smart, *world.smart);
  EXPECT_THAT(all_warnings(volume->status()), testing::ElementsAre(HasSubstr("read-only")));
  const auto shown = to_json(volume->settings(), volume->status());
  EXPECT_EQ(shown.at("drives").at("temperature_c"), 41);
}

TEST_F(VolumeTest, ATargetWithoutSmartDataIsNotPolledContinuously) {
  start();
  ASSERT_TRUE(run_until([&] { return world.count("probe") > 3; }));
  EXPECT_EQ(world.count("smart nvme7"), 1);
  EXPECT_FALSE(volume->status().drives);
}

TEST_F(VolumeTest, AShutDownFileSystemIsRemountedAndNeverDetached) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.shut_down = true;
  ASSERT_TRUE(becomes(State::Lost));
  world.shut_down = false;
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_EQ(world.count("detach"), 0);
  EXPECT_EQ(world.count("mount ro"), 2);
  EXPECT_EQ(volume->status().history.recoveries(), 1U);
}

TEST_F(VolumeTest, AWritableVolumeThatTurnedReadOnlyIsRemounted) {
  settings.access = config::Access::Exclusive;
  settings.fence = config::Fence::None;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.mounts.front().super_options = "ro,errors=remount-ro";
  ASSERT_TRUE(run_until([&] { return world.count("mount rw") == 2; }));
  EXPECT_TRUE(becomes(State::Ready));
  EXPECT_THAT(seen, testing::Contains(State::Lost));
}

TEST_F(VolumeTest, AShutDownFileSystemInUseStaysLostAndNamesItsUsers) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.shut_down = true;
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end them"};
  ASSERT_TRUE(run_until(
      [&] { return volume->status().next_attempt && reason().find("python3") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Lost);
  world.unmount_error.reset();
  world.shut_down = false;
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, OnLossHoldKeepsADeadMountForItsUsers) {
  settings.on_loss = config::OnLoss::Hold;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end them"};
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return reason().find("python3") != std::string::npos; }));
  EXPECT_EQ(volume->status().state, State::Lost);
  EXPECT_EQ(world.count("detach"), 0);
  world.unmount_error.reset();
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AWarningNamesProcessesWithOpenFilesInADetachedMount) {
  world.users = "python3 (pid 7, open file)";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_THAT(all_warnings(volume->status()), testing::Contains(HasSubstr("python3 (pid 7, open file)")));
}

TEST_F(VolumeTest, ANamespaceWithAChangedUuidIsMountedWithAWarning) {
  world.namespace_uuid = "11111111-0000-0000-0000-000000000000";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.namespace_uuid = "22222222-0000-0000-0000-000000000000";
  world.lose_device();
  ASSERT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_THAT(all_warnings(volume->status()),
              testing::Contains(HasSubstr("give it a fixed identity on the target")));
}

TEST_F(VolumeTest, AnotherFileSystemThatIsConfiguredIsNotCalledTheSameOne) {
  world.namespace_uuid = "11111111-0000-0000-0000-000000000000";
  start();
  ASSERT_TRUE(becomes(State::Ready));
  volume->stop();
  settings.nvme->filesystem_uuid = world.superblock.uuid = "bbbbbbbb-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.namespace_uuid = "22222222-0000-0000-0000-000000000000";
  world.lose_device();
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_FALSE(volume->status().warnings.contains(Warning::NamespaceId));
}

TEST_F(VolumeTest, ADiskThatBecomesSmallerThanItsMountedFileSystemIsNamedUntilItIsAsLargeAgain) {
  world.superblock.filesystem_bytes = world.superblock.bytes = 1 << 30;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.bytes = 1 << 29;
  ASSERT_TRUE(run_until([&] { return volume->status().warnings.contains(Warning::CutShort); }));
  EXPECT_THAT(volume->status().warnings.at(Warning::CutShort),
              HasSubstr("from 1073741824 to 536870912 bytes"));
  world.superblock.bytes = 1 << 30;
  EXPECT_TRUE(run_until([&] { return !volume->status().warnings.contains(Warning::CutShort); }));
}

TEST_F(VolumeTest, AFileSystemThatShrankIsRefused) {
  world.superblock.filesystem_bytes = world.superblock.bytes = 1 << 30;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.filesystem_bytes = 1 << 29;
  world.lose_device();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_THAT(reason(), HasSubstr("older copy"));
}

TEST_F(VolumeTest, AFileSystemThatGrewIsAccepted) {
  world.superblock.filesystem_bytes = world.superblock.bytes = 1 << 30;
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.superblock.filesystem_bytes = world.superblock.bytes = Bytes{1} << 31;
  world.lose_device();
  EXPECT_TRUE(run_until([&] { return volume->status().history.recoveries() == 1; }));
  EXPECT_EQ(world.pinned->bytes, Bytes{1} << 31);
}

TEST_F(VolumeTest, ANamespaceSmallerThanItsFileSystemIsRefused) {
  world.superblock.filesystem_bytes = 1 << 30;
  world.superblock.bytes = 1 << 29;
  start();
  EXPECT_TRUE(becomes(State::Refused));
}

TEST_F(VolumeTest, AnOutageFromBeforeARestartEndsWhenTheVolumeIsReady) {
  History history;
  history.outage_begins(clock.wall() - std::chrono::minutes(5), "link down");
  world.records[Record::History] = history.to_json();
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_TRUE(run_until([&] { return !History::from_json(world.records[Record::History]).is_out(); }));
  EXPECT_GE(*volume->status().history.last_outage_s(), 300);
}

TEST_F(VolumeTest, ANamespaceMissedByTheKernelTriggersARescan) {
  timings.namespace_wait = Duration(5'000);
  timings.namespace_rescan = Duration(2);
  world.plug_in(kNqn);
  world.block.swap(world.hidden);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  EXPECT_EQ(world.count("rescan nvme7"), 1);
}

TEST_F(VolumeTest, AnotherProgramsControllerIsNotRescanned) {
  timings.namespace_rescan = Duration(2);
  world.plug_in(kNqn);
  world.controllers[0].owner = "nvme-stas";
  world.block.swap(world.hidden);
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("is not there") != std::string::npos; }));
  EXPECT_EQ(world.count("rescan nvme7"), 0);
}

}  // namespace
}  // namespace spark::volumes
