// A volume over a fake world.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "daemon/volumes/volume/volume.hpp"
#include "tests/support/fake_seams.hpp"

namespace spark::volumes::test {

inline constexpr char kNqn[] = "raid5-data";
inline constexpr char kUuid[] = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

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
    timings.watch = timings.namespace_poll = Duration(1);
    timings.first_retry = timings.longest_retry = timings.refused_retry = Duration(2);
    timings.namespace_wait = Duration(20);
    timings.watch_closely = Duration(1);
    timings.probe = timings.leave = timings.probe_reader = timings.mounted_state = timings.settled =
        timings.link_doubt = Duration(0);
    timings.first_leave = timings.longest_leave = timings.io_silence = Duration(1);
  }
  ~VolumeTest() override {
    if (volume) volume->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(200));
  }

  void start() {
    volume = std::make_shared<Volume>(context.get_executor(), settings, target, fake_seams(world), clock,
                                      timings, [this](const Volume& changed, State) {
                                        seen.push_back(changed.status().state);
                                        reasons.push_back(changed.status().reason);
                                      });
    volume->start();
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
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
  Timings timings;
  std::vector<State> seen;
  std::vector<std::string> reasons;  // with `seen`: the next one may replace it at once
  std::shared_ptr<Volume> volume;
};

}  // namespace spark::volumes::test
