// Two volumes of one subsystem, on a simulated host: they share its connection.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "daemon/sim/simulated_host.hpp"
#include "daemon/volumes/volume/volume_set.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark::volumes {
namespace {

config::Config two_namespaces() {
  config::Config config;
  config::Target rose;
  rose.name = "rose";
  rose.portals = {{"10.0.0.5", 4420}};
  config.targets["rose"] = rose;
  for (const std::uint32_t nsid : {1U, 2U}) {
    config::Volume volume;
    volume.name = "v" + std::to_string(nsid);
    volume.nvme = config::NvmeSource{"rose", "shared", nsid, "", ""};
    volume.mount = "/mnt/" + volume.name;
    volume.access = config::Access::Exclusive;
    config.volumes.push_back(std::move(volume));
  }
  return config;
}

class SharedSubsystemTest : public testing::Test {
 protected:
  SharedSubsystemTest() {
    worker.on("record", "echo '{\"result\": {}}'");
    sim::Scenario scenario;
    for (const config::Volume& volume : config.volumes) {
      sim::VolumeChange offers;
      offers.volume = volume.name;
      offers.reservations = true;
      scenario.beginning.emplace_back(offers);
    }
    host = std::make_unique<sim::SimulatedHost>(
        HostContext{context.get_executor(), clock, runner, snapshot, folder.path()}, config, scenario);
    set.start(config);
  }
  ~SharedSubsystemTest() override {
    set.stop();
    host->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(100));
  }

  // The simulated host's, with records that take a moment to write or to forget, as on a drive.
  Seams seams_of(const config::Volume& volume, const std::optional<config::Target>& target) {
    struct Stored {
      explicit Stored(Seams its) : simulated(std::move(its)) { records.save_takes = 3; }
      Seams simulated;
      FakeWorld records;
      FakeStore store{records};
    };
    const auto all = std::make_shared<Stored>(host->seams_of(volume, target));
    const Seams& its = all->simulated;
    return {its.fabric, its.snapshot, its.mounts, its.device, its.reserve, all->store, its.neighbours, all};
  }
  bool are_all(State state) {
    return run_until(context, [&] {
      return std::ranges::all_of(set.all(), [&](const auto& one) { return one->status().state == state; });
    });
  }
  std::string controller() const { return set.all().front()->status().paths.front().controller; }
  void down_at_once() {
    std::size_t ended = 0;
    auto ask = [&ended](std::shared_ptr<Volume> volume) -> boost::asio::awaitable<void> {
      const auto down = co_await volume->requests().keep_down("alice");
      EXPECT_TRUE(down);
      ++ended;
    };
    for (const auto& volume : set.all()) boost::asio::co_spawn(context, ask(volume), boost::asio::detached);
    ASSERT_TRUE(run_until(context, [&] { return ended == set.all().size(); }));
  }

  boost::asio::io_context context{1};
  SystemClock clock;
  TemporaryFolder folder;
  ScriptedWorker worker;
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  HostSnapshot snapshot{clock};
  config::Config config = two_namespaces();
  std::unique_ptr<sim::SimulatedHost> host;
  MakeSeams make_seams = [this](const config::Volume& volume, const std::optional<config::Target>& target) {
    return seams_of(volume, target);
  };
  VolumeSet set{context.get_executor(),     runner, make_seams, clock, folder.path(),
                [](const Volume&, State) {}};
};

TEST_F(SharedSubsystemTest, TwoVolumesTakenDownAtOnceLeaveNoConnection) {
  ASSERT_TRUE(are_all(State::Ready));
  const std::string before = controller();
  down_at_once();
  for (const auto& volume : set.all()) {
    auto up = [](std::shared_ptr<Volume> asked) -> boost::asio::awaitable<void> {
      const auto recorded = co_await asked->requests().keep_up();
      EXPECT_TRUE(recorded);
    };
    boost::asio::co_spawn(context, up(volume), boost::asio::detached);
  }
  ASSERT_TRUE(are_all(State::Ready));
  EXPECT_NE(controller(), before) << "it was never disconnected";
}

}  // namespace
}  // namespace spark::volumes
