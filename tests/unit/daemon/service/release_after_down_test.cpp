// `spark-staged release` of a volume that an operator took down before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/service/release.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/run_on.hpp"

namespace spark {
namespace {

using volumes::FakeWorld;

TEST(ReleaseAfterADown, WhatWasMountedOrConnectedSinceIsLeftAloneOutsideAShutdown) {
  FakeWorld world;
  world.plug_in("raid5-data");
  world.mount("/mnt/data", true, world.block->device_number);
  config::Volume volume;
  volume.name = "datasets";
  volume.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
  volume.mount = "/mnt/data";
  const SystemClock clock;
  volumes::Intent down{false, clock.wall(), "alice"};
  down.is_released = true;
  world.intent = down;
  const auto release = [&](ReleaseReason why) {
    boost::asio::io_context context;
    SharedLink link{1};
    const auto said =
        await(context, release_volume(volumes::fake_seams(world), volume, link, clock, {}, why));
    return said.value_or("");
  };
  EXPECT_EQ(release(ReleaseReason::Asked), "volume datasets: is down, and left alone");
  world.mounts.clear();
  EXPECT_EQ(release(ReleaseReason::Asked), "volume datasets: is down, and left alone");
  EXPECT_TRUE(world.touched.empty());
  EXPECT_THAT(release(ReleaseReason::Shutdown), testing::HasSubstr("nvme7 disconnected"));
}

}  // namespace
}  // namespace spark
