// Two targets that offer a subsystem of the same NQN: a volume uses its own target's disk, or none.
#include <gmock/gmock.h>

#include "nvmetcp/sysfs/registry.hpp"
#include "tests/support/run_on.hpp"
#include "tests/unit/daemon/volumes/volume_fixture.hpp"

namespace spark::volumes {
namespace {

using namespace test;

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST_F(VolumeTest, AVolumeOfAnUnreachableTargetIsNotReadyOnAnotherTargetsNamespace) {
  world.target_up = false;
  world.plug_in_other(kNqn);
  start();
  ASSERT_TRUE(run_until([&] { return world.count("discover") > 5; }));
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_EQ(world.count("superblock"), 0) << "its disk is not even read";
  EXPECT_THAT(reason(), HasSubstr("target rose unreachable"));
  EXPECT_THAT(reason(), HasSubstr("10.0.0.9:4420 (target spare) is of the same NQN"));
}

TEST_F(VolumeTest, AVolumeIsRefusedWhileAnotherTargetsNamespaceHasItsNsid) {
  world.plug_in_other(kNqn);
  start();
  ASSERT_TRUE(becomes(State::Refused));
  EXPECT_EQ(world.count("connect"), 0);
  EXPECT_THAT(reason(), HasSubstr("10.0.0.9:4420 (target spare)"));
  EXPECT_THAT(reason(), HasSubstr("no address of target rose"));
  EXPECT_THAT(reason(), HasSubstr("another NQN"));
  world.unplug(FakeWorld::kOtherAddress);
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AVolumeIsReadyIfAnotherTargetHasNoNamespaceWithItsNsid) {
  const std::string other = world.plug_in_other(kNqn, false);
  start();
  ASSERT_TRUE(becomes(State::Ready));
  ASSERT_EQ(volume->status().paths.size(), 1U);
  EXPECT_EQ(volume->status().paths[0].address, "10.0.0.5:4420");
  EXPECT_TRUE(await(context, volume->requests().ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  ASSERT_EQ(world.controllers.size(), 1U) << "the other target's connection stays";
  EXPECT_EQ(world.controllers[0].name, other);
}

TEST_F(VolumeTest, AMountOfAnotherTargetsNamespaceIsNotAdopted) {
  const std::string other = world.plug_in_other(kNqn);
  world.mount("/mnt/data", true, world.others[other]->device_number);
  world.target_up = false;
  start();
  ASSERT_TRUE(run_until([&] { return world.count("discover") > 5; }));
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  EXPECT_THAT(seen, Not(Contains(State::Stalled)));
  EXPECT_FALSE(world.pinned);
  EXPECT_EQ(world.mounts.size(), 1U);
}

TEST_F(VolumeTest, AVolumeWithoutALinkIsStalledDespiteAnotherTargetsLiveConnection) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.plug_in_other(kNqn, false);
  world.controllers[0].state = "connecting";
  ASSERT_TRUE(becomes(State::Stalled));
  EXPECT_EQ(volume->status().paths.size(), 1U);
  world.controllers[0].state = "live";
  EXPECT_TRUE(becomes(State::Ready));
}

TEST_F(VolumeTest, AConnectionToAnAddressInTheTargetsLogIsUsedAsItsOwn) {
  world.offer(kNqn, "10.0.1.5", 4420);
  world.plug_in(kNqn, {"10.0.1.5", 4420});
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.count("mount ro"), 0);
  EXPECT_EQ(volume->status().paths.at(0).address, "10.0.1.5:4420");
}

TEST_F(VolumeTest, AConnectionMadeLaterIsCheckedAgainstTheTargetsLog) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.offer(kNqn, "10.0.1.5", 4420);
  world.plug_in(kNqn, {"10.0.1.5", 4420});
  EXPECT_TRUE(run_until([&] { return volume->status().paths.size() == 2; }));
  EXPECT_EQ(all_warnings(volume->status()).size(), 0U);
}

TEST_F(VolumeTest, APathOutsideTheTargetsAddressesCausesAWarning) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.others.erase(world.plug_in_other(kNqn, false));  // it leads to our namespace
  ASSERT_TRUE(run_until([&] { return !all_warnings(volume->status()).empty(); }));
  EXPECT_THAT(all_warnings(volume->status()).back(), HasSubstr("data may go over it"));
  EXPECT_THAT(all_warnings(volume->status()).back(), HasSubstr("10.0.0.9:4420"));
  EXPECT_EQ(volume->status().paths.size(), 1U);
}

TEST_F(VolumeTest, ARestartedDaemonAdoptsTheMountOfATargetWithAHostName) {
  target->portals = {{"nas.lan", 4420}};
  world.names["nas.lan"] = "10.0.0.5";
  world.plug_in(kNqn);
  world.mount("/mnt/data", true, world.block->device_number);
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.count("mount ro"), 0);
  EXPECT_EQ(world.controllers.size(), 1U);
}

class RestartWithoutNamesTest : public VolumeTest {
 protected:
  RestartWithoutNamesTest() {
    target->portals = {{"nas.lan", 4420}};
    world.names["nas.lan"] = "10.0.0.5";
    start();
    EXPECT_TRUE(becomes(State::Ready));
    EXPECT_TRUE(run_until([&] { return !world.records[Record::Addresses].empty(); }));
    world.controllers[0].owner = nvmetcp::kOwner;
    world.names.clear();
    world.target_up = false;  // no address without a name
    volume->stop();
  }
};

TEST_F(RestartWithoutNamesTest, AMountedVolumeIsReadyAndCanBeTakenDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready)) << reason();
  EXPECT_EQ(world.count("mount ro"), 1) << "adopted";
  EXPECT_TRUE(await(context, volume->requests().ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  EXPECT_TRUE(world.mounts.empty());
  EXPECT_TRUE(world.controllers.empty());
}

TEST_F(RestartWithoutNamesTest, AConnectionMadeByAnotherProgramAtTheAddressIsNotTheTargets) {
  world.controllers[0].owner.clear();
  start();
  world.touched.clear();
  ASSERT_TRUE(run_until([&] { return world.count("discover") > 2; }));
  EXPECT_EQ(volume->status().state, State::Waiting) << reason();
}

TEST_F(RestartWithoutNamesTest, AMountOverAConnectionOfUnknownOriginIsNotCalledDown) {
  world.controllers[0].owner.clear();
  start();
  const auto refused = await(context, volume->requests().ask_down());
  ASSERT_TRUE(refused && !*refused);
  EXPECT_EQ(refused->error().kind, Errc::Unavailable);
  EXPECT_THAT(refused->error().message(), HasSubstr("nvme7 at 10.0.0.5:4420 (target rose) is of target rose "
                                                    "can't be told: its name can't be looked up"));
  EXPECT_EQ(world.mounts.size(), 1U);
  world.names["nas.lan"] = "10.0.0.5";
  const auto down = await(context, volume->requests().ask_down());
  EXPECT_TRUE(down && *down);
  EXPECT_TRUE(world.mounts.empty());
}

TEST_F(RestartWithoutNamesTest, TheAddressOfAnotherPortalDoesNotCount) {
  target->portals = {{"spare.lan", 4420}};
  start();
  ASSERT_TRUE(run_until([&] { return reason().find("no address of target rose") != std::string::npos; }))
      << reason();
  EXPECT_NE(volume->status().state, State::Ready);
}

// Two volumes, one of each target.
class TwoTargetsTest : public VolumeTest {
 protected:
  TwoTargetsTest() { world.has_discovery = false; }  // the fake has one log for all targets
  ~TwoTargetsTest() override {
    if (second) second->stop();
  }
  void start_second() {
    config::Volume copies = settings;
    copies.name = "copies";
    copies.nvme->target = "spare";
    copies.mount = "/mnt/copies";
    config::Target spare;
    spare.name = "spare";
    spare.portals = {{FakeWorld::kOtherAddress, 4420}};
    second = std::make_shared<Volume>(context.get_executor(), copies, spare, fake_seams(world), clock,
                                      timings, [](const Volume&, State) {});
    second->start();
  }
  bool second_becomes(State state) {
    return run_until([&] { return second->status().state == state; });
  }
  // The kernel gives up the first target's connection, and that target does not return.
  void lose_first() {
    world.unreachable.insert("10.0.0.5");
    world.unplug("10.0.0.5");
  }

  std::shared_ptr<Volume> second;
};

TEST_F(TwoTargetsTest, TheSecondVolumeIsRefusedWithAReasonWhileTheFirstIsReady) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  start_second();
  ASSERT_TRUE(second_becomes(State::Refused));
  EXPECT_THAT(second->status().reason, HasSubstr("nvme7 at 10.0.0.5:4420 (target rose)"));
  EXPECT_EQ(world.controllers.size(), 1U);
}

TEST_F(TwoTargetsTest, TheSecondVolumeIsRefusedAndNotConnectedWhileTheFirstIsStalled) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  world.set_link("connecting");
  ASSERT_TRUE(becomes(State::Stalled));
  start_second();
  ASSERT_TRUE(second_becomes(State::Refused));
  EXPECT_THAT(second->status().reason, HasSubstr("(target rose)"));
  EXPECT_EQ(world.controllers.size(), 1U) << "what waits for the first would go over it";
}

TEST_F(TwoTargetsTest, TheFirstVolumeIsRefusedUntilTheSecondThatReplacedItIsDown) {
  start();
  ASSERT_TRUE(becomes(State::Ready));
  start_second();
  ASSERT_TRUE(second_becomes(State::Refused));
  seen.clear();
  lose_first();
  ASSERT_TRUE(second_becomes(State::Ready)) << second->status().reason;
  world.unreachable.clear();
  ASSERT_TRUE(becomes(State::Refused)) << reason();
  EXPECT_THAT(reason(), HasSubstr("10.0.0.9:4420 (target spare)"));
  world.controllers.back().state = "connecting";
  ASSERT_TRUE(second_becomes(State::Stalled));
  ASSERT_TRUE(
      run_until([&, looks = world.count("discover")] { return world.count("discover") > looks + 3; }));
  EXPECT_EQ(volume->status().state, State::Refused);
  EXPECT_THAT(seen, Not(Contains(State::Ready)));
  EXPECT_EQ(world.controllers.size(), 1U);
  world.controllers.back().state = "live";
  EXPECT_TRUE(await(context, second->requests().ask_down()).value_or(fail(Errc::Failed, "it never ended")));
  EXPECT_TRUE(becomes(State::Ready)) << reason();
}

TEST_F(TwoTargetsTest, TheSecondVolumeIsRefusedWithAReasonIfBothConnectAtOnce) {
  world.while_connecting = [this] { world.plug_in(kNqn); };  // the first volume connects a moment earlier
  start_second();
  ASSERT_TRUE(second_becomes(State::Refused));
  EXPECT_THAT(second->status().reason, HasSubstr("(target rose)"));
  EXPECT_EQ(world.count("mount ro"), 0);
}

}  // namespace
}  // namespace spark::volumes
