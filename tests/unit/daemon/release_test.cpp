#include "daemon/release.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/fake_volume_actions.hpp"

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using volumes::FakeVolumeActions;
using volumes::FakeWorld;

class ReleaseTest : public testing::Test {
 protected:
  ReleaseTest() {
    volume.name = "datasets";
    volume.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    volume.mount = "/mnt/data";
    world.plug_in("raid5-data");
    world.mount("/mnt/data", true, world.block->device_number);
  }

  std::string release() { return release({volume}).front(); }

  // All of one subsystem, side by side.
  std::vector<std::string> release(const std::vector<config::Volume>& volumes) {
    FakeVolumeActions actions(world);
    boost::asio::io_context context;
    SharedLink link{volumes.size(), false};
    std::vector<std::string> said(volumes.size());
    auto go = [&](const config::Volume& one, std::string& into) -> boost::asio::awaitable<void> {
      const ReleasePatience patience{Duration(20), Duration(1)};
      into = co_await release_volume(actions, one, link, clock, patience);
    };
    for (std::size_t i = 0; i < volumes.size(); ++i)
      boost::asio::co_spawn(context, go(volumes[i], said[i]), boost::asio::detached);
    context.run();
    return said;
  }
  config::Volume unmounted_neighbour() const {
    config::Volume other = volume;
    other.name = "logs";
    other.nvme->nsid = 2;
    other.mount = "/mnt/logs";
    return other;
  }

  FakeWorld world;
  config::Volume volume;
  SystemClock clock;
};

TEST_F(ReleaseTest, UnmountsThenDisconnectsWhileTheTargetAnswers) {
  EXPECT_EQ(release(), "volume datasets: unmounted, nvme7 disconnected");
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "disconnect"));
}

TEST_F(ReleaseTest, CutsOffATargetThatIsGoneWithoutTouchingItsMount) {
  world.set_link("connecting");
  EXPECT_THAT(release(), HasSubstr("does not answer: cut off"));
  EXPECT_THAT(world.touched, ElementsAre("disconnect"));
}

TEST_F(ReleaseTest, CutsOffATargetThatIsSilentAlthoughItsLinkIsUp) {
  world.answers = false;
  EXPECT_THAT(release(), HasSubstr("does not answer: cut off"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "disconnect"));
}

TEST_F(ReleaseTest, KeepsTheLinkUnderProgramsThatDoNotEndAndNamesThem) {
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  EXPECT_THAT(release(), HasSubstr("in use by python3 (pid 7)"));
  EXPECT_GT(world.count("unmount"), 1);
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST_F(ReleaseTest, AnExclusiveVolumesReservationIsGivenBackBetweenUnmountAndDisconnect) {
  volume.access = config::Access::Exclusive;
  world.reservations.offers = true;
  world.reservations.state.registrants = {{FakeWorld::kHostId, 11, true}};
  EXPECT_EQ(release(), "volume datasets: unmounted, its reservation given back, nvme7 disconnected");
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "release", "disconnect"));
}

TEST_F(ReleaseTest, DisconnectsWhatIsNotMounted) {
  world.mounts.clear();
  EXPECT_EQ(release(), "volume datasets: not mounted, nvme7 disconnected");
}

TEST_F(ReleaseTest, TheLinkOfTwoNamespacesStaysUntilBothAreUnmounted) {
  EXPECT_THAT(release({unmounted_neighbour(), volume}),
              ElementsAre("volume logs: not mounted", "volume datasets: unmounted, nvme7 disconnected"));
  EXPECT_THAT(world.touched, ElementsAre("probe", "unmount", "disconnect"));
}

TEST_F(ReleaseTest, TheLinkOfTwoNamespacesStaysWhileOneIsInUse) {
  world.unmount_error =
      Error{Errc::Refused, "unmounting /mnt/data: it is in use by python3 (pid 7)", "end it"};
  release({volume, unmounted_neighbour()});
  EXPECT_EQ(world.count("disconnect"), 0);
}

TEST_F(ReleaseTest, AnNfsMountIsUnmounted) {
  volume.nvme.reset();
  volume.nfs = config::NfsSource{"10.0.0.9", "/data"};
  EXPECT_EQ(release(), "volume datasets: unmounted");
}

}  // namespace
}  // namespace spark
