// A volume of a simulated world, which is released.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "daemon/service/release.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark {

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
  // The volume's own export, as it appears in the mount table.
  void mount_nfs() {
    volume.nvme.reset();
    volume.nfs = config::NfsSource{"10.0.0.9", "/data"};
    world.mounts.clear();
    world.mount("/mnt/data", false, 7, "10.0.0.9:/data", "nfs4");
  }

  std::string release() { return release({volume}).front(); }

  // Releases several volumes of one subsystem concurrently.
  std::vector<std::string> release(const std::vector<config::Volume>& volumes) {
    const auto seams = volumes::fake_seams(world);
    boost::asio::io_context context;
    SharedLink link{volumes.size()};
    std::vector<std::string> said(volumes.size());
    std::size_t ended = 0;
    is_done = true;
    auto go = [&](const config::Volume& one, std::string& into) -> boost::asio::awaitable<void> {
      const ReleaseTimings timings{Duration(20), Duration(1), 2, flush_silence, flush_silence};
      const auto outcome = co_await release_volume(seams, one, link, clock, timings, why);
      into = outcome.said;
      is_done = is_done && outcome.is_done;
      if (++ended == volumes.size()) context.stop();  // what hangs in the kernel goes on
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
  ReleaseReason why = ReleaseReason::Shutdown;
  config::Volume volume;
  SystemClock clock;
  Duration flush_silence{20};
  bool is_done = true;  // all of the last release
};

}  // namespace spark
