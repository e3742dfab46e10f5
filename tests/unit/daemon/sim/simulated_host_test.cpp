#include "daemon/sim/simulated_host.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "daemon/volumes/volume/volume.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark::sim {
namespace {

using volumes::State;

config::Config rose_and_datasets(config::Access access) {
  config::Config config;
  config::Target rose;
  rose.name = "rose";
  rose.portals = {{"10.0.0.5", 4420}};
  config.targets["rose"] = rose;
  config::Volume datasets;
  datasets.name = "datasets";
  datasets.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
  datasets.mount = "/mnt/data";
  datasets.access = access;
  config.volumes = {datasets};
  return config;
}

// A real volume on a simulated host; only the records in its state folder go through a worker.
class SimulatedHostTest : public testing::Test {
 protected:
  void start(config::Config config, std::vector<WorldChange> beginning = {}) {
    worker.on("record", "echo '{\"result\": {}}'");
    Scenario scenario;
    scenario.beginning = std::move(beginning);
    HostContext host_context{context.get_executor(), clock, runner, snapshot, folder.path()};
    host = std::make_unique<SimulatedHost>(std::move(host_context), config, std::move(scenario));
    const config::Volume& settings = config.volumes.front();
    const std::optional<config::Target> target = config.targets.at("rose");
    volumes::Timings timings;
    timings.watch = timings.watch_closely = timings.link_doubt = timings.probe = timings.probe_reader =
        timings.mounted_state = timings.first_retry = timings.longest_retry = Duration(1);
    volume = std::make_shared<volumes::Volume>(context.get_executor(), settings, target,
                                               host->seams_of(settings, target), clock, timings,
                                               volumes::Volume::OnChange{});
    volume->start();
  }
  ~SimulatedHostTest() override {
    if (volume) volume->stop();
    if (host) host->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(100));
  }
  bool becomes(State state) {
    return run_until(context, [&] { return volume->status().state == state; });
  }

  boost::asio::io_context context{1};
  SystemClock clock;
  TemporaryFolder folder;
  ScriptedWorker worker;
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  HostSnapshot snapshot{clock};
  std::unique_ptr<SimulatedHost> host;
  std::shared_ptr<volumes::Volume> volume;
};

TEST_F(SimulatedHostTest, AVolumeBecomesReadyOnASimulatedHost) {
  start(rose_and_datasets(config::Access::ReadOnly));
  EXPECT_TRUE(becomes(State::Ready)) << volume->status().reason;
  EXPECT_EQ(volume->status().device, "/dev/nvme-sim1n1");
  EXPECT_EQ(volume->status().paths.front().address, "10.0.0.5:4420");
}

TEST_F(SimulatedHostTest, AVolumeWaitsForATargetThatIsDownAtTheStart) {
  TargetChange down;
  down.target = "rose";
  down.state = Reach::Down;
  start(rose_and_datasets(config::Access::ReadOnly), {down});
  EXPECT_TRUE(run_until(context, [&] { return volume->status().next_attempt.has_value(); }));
  EXPECT_EQ(volume->status().state, State::Waiting);
}

TEST_F(SimulatedHostTest, AnExclusiveVolumeIsFencedByAReservation) {
  VolumeChange offers;
  offers.volume = "datasets";
  offers.reservations = true;
  start(rose_and_datasets(config::Access::Exclusive), {offers});
  EXPECT_TRUE(becomes(State::Ready)) << volume->status().reason;
  EXPECT_TRUE(volume->status().fence.reservation);
}

TEST_F(SimulatedHostTest, AnExclusiveVolumeWithoutAFenceIsRefused) {
  start(rose_and_datasets(config::Access::Exclusive));
  EXPECT_TRUE(becomes(State::Refused));
}

TEST_F(SimulatedHostTest, WorkersReceiveNoDeviceOrMountToCheck) {
  start(rose_and_datasets(config::Access::ReadOnly));
  datasets::SourcePlace place;
  place.path = "/mnt/data/imagenet";
  place.mount = "/mnt/data";
  place.device = "/dev/nvme-sim1n1";
  host->limit_to_host(place);
  EXPECT_EQ(place.path, "/mnt/data/imagenet");
  EXPECT_EQ(place.mount, "");
  EXPECT_EQ(place.device, "");
}

}  // namespace
}  // namespace spark::sim
