// `spark-staged release` of a volume that an operator took down before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/service/release.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/run_on.hpp"

namespace spark {
namespace {

using volumes::FakeWorld;

class ReleaseAfterADown : public testing::Test {
 protected:
  ReleaseAfterADown() {
    world.plug_in("raid5-data");
    world.mount("/mnt/data", true, world.block->device_number);
    volume.name = "datasets";
    volume.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    volume.mount = "/mnt/data";
    world.intent = volumes::Intent{false, clock.wall(), "alice"};
  }
  std::string release(ReleaseReason why) {
    boost::asio::io_context context;
    SharedLink link{1};
    return await(context, release_volume(volumes::fake_seams(world), volume, link, clock, {}, why))
        .value_or(ReleaseOutcome{})
        .said;
  }
  const SystemClock clock;
  FakeWorld world;
  config::Volume volume;
};

TEST_F(ReleaseAfterADown, WhatWasMountedOrConnectedSinceIsLeftAloneOutsideAShutdown) {
  world.intent->is_released = true;
  EXPECT_EQ(release(ReleaseReason::Asked), "volume datasets: is down, and left alone");
  world.mounts.clear();
  EXPECT_EQ(release(ReleaseReason::Asked), "volume datasets: is down, and left alone");
  EXPECT_TRUE(world.touched.empty());
  EXPECT_THAT(release(ReleaseReason::Shutdown), testing::HasSubstr("nvme7 disconnected"));
}

TEST_F(ReleaseAfterADown, ADownThatWasCutShortIsCompleted) {
  EXPECT_EQ(release(ReleaseReason::Asked), "volume datasets: unmounted, nvme7 disconnected");
  EXPECT_TRUE(world.mounts.empty());
}

}  // namespace
}  // namespace spark
