#include "daemon/sim/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/parse.hpp"

namespace spark::sim {
namespace {

using testing::HasSubstr;

constexpr char kConfig[] = R"(version: 1
targets:
  rose: {portals: [10.0.0.5, 10.0.1.5]}
volumes:
  datasets: {target: rose, subsystem: raid5-data, mount: /mnt/data}
  nas: {nfs: "10.0.0.9:/data", mount: /mnt/nas}
)";

Result<Scenario> read(const std::string& simulation) {
  const std::string yaml = kConfig + simulation;
  const auto config = config::parse(yaml, "try.yaml");
  EXPECT_TRUE(config) << config.error().message();
  return parse_scenario(yaml, config.value_or(config::Config{}));
}

std::string problem_of(const std::string& simulation) {
  const auto scenario = read(simulation);
  return scenario ? "no problem" : scenario.error().what;
}

TEST(Scenario, AnEmptySectionIsAHostWithoutEvents) {
  const auto scenario = read("simulation: {}\n");
  ASSERT_TRUE(scenario) << scenario.error().message();
  EXPECT_TRUE(scenario->beginning.empty());
  EXPECT_TRUE(scenario->events.empty());
  EXPECT_FALSE(scenario->repeats);
}

TEST(Scenario, TheInitialStateOfTargetsAndVolumesIsRead) {
  const auto scenario = read(R"(simulation:
  pace: 250ms
  repeat: true
  targets:
    rose: {state: refusing}
  volumes:
    datasets: {type: xfs, size: 4TiB, reservations: true, latency: never}
    nas: {users: python3 (pid 4711)}
)");
  ASSERT_TRUE(scenario) << scenario.error().message();
  EXPECT_EQ(scenario->pace, Duration(250));
  EXPECT_TRUE(scenario->repeats);
  ASSERT_EQ(scenario->beginning.size(), 3u);
  EXPECT_EQ(std::get<TargetChange>(scenario->beginning[0]).state, Reach::Refusing);
  const auto& datasets = std::get<VolumeChange>(scenario->beginning[1]);
  EXPECT_EQ(datasets.type, "xfs");
  EXPECT_EQ(datasets.size, 4 * kTiB);
  EXPECT_EQ(datasets.reservations, true);
  EXPECT_EQ(datasets.mmp, std::nullopt);
  ASSERT_TRUE(datasets.latency);
  EXPECT_EQ(*datasets.latency, std::nullopt);
  EXPECT_EQ(std::get<VolumeChange>(scenario->beginning[2]).users, "python3 (pid 4711)");
}

TEST(Scenario, EventsHappenAfterATimeOrAtASignal) {
  const auto scenario = read(R"(simulation:
  events:
    - {after: 2s, target: rose, address: 10.0.1.5, state: down}
    - {after: signal, volume: datasets, mount: shut-down}
    - {after: signal, volume: datasets, writer: none}
)");
  ASSERT_TRUE(scenario) << scenario.error().message();
  ASSERT_EQ(scenario->events.size(), 3u);
  EXPECT_EQ(scenario->events[0].after, Duration(2000));
  EXPECT_EQ(std::get<TargetChange>(scenario->events[0].change).address, "10.0.1.5");
  EXPECT_EQ(scenario->events[0].sentence, "target rose: address 10.0.1.5, state down");
  EXPECT_EQ(scenario->events[1].after, std::nullopt);
  EXPECT_EQ(std::get<VolumeChange>(scenario->events[1].change).mount_end, MountEnd::ShutDown);
  EXPECT_EQ(std::get<VolumeChange>(scenario->events[2].change).writer, "");
}

TEST(Scenario, AllErrorsAreReportedWithTheirPlace) {
  const std::string said = problem_of(R"(simulation:
  pase: 1s
  targets: {rsoe: {state: down}}
  events:
    - {target: rose, state: away}
    - {after: 1s, state: down}
    - {after: 1s, volume: datasetz, ofered: false}
    - {after: soon, target: rose, address: 10.0.0.6}
)");
  EXPECT_THAT(said, HasSubstr("try.yaml:8:3: unknown key 'pase' in simulation; did you mean 'pace'?"));
  EXPECT_THAT(said,
              HasSubstr("simulation.targets: there is no target 'rsoe' in this file; did you mean 'rose'?"));
  EXPECT_THAT(said, HasSubstr("simulation.events.1.after: is missing; write a time since the event before"));
  EXPECT_THAT(said, HasSubstr("simulation.events.1.state: 'away' is not one of up, down, refusing"));
  EXPECT_THAT(said, HasSubstr("simulation.events.2.target: name either a 'target' or a 'volume'"));
  EXPECT_THAT(said, HasSubstr("there is no volume 'datasetz' in this file; did you mean 'datasets'?"));
  EXPECT_THAT(said, HasSubstr("unknown key 'ofered' in simulation.events.3; did you mean 'offered'?"));
  EXPECT_THAT(said, HasSubstr("simulation.events.4.after: 'soon'"));
  EXPECT_THAT(said, HasSubstr("simulation.events.4.address: '10.0.0.6' is no address of target 'rose'"));
}

TEST(Scenario, EventsHaveToBeAList) {
  EXPECT_THAT(problem_of("simulation: {events: {after: 1s}}\n"),
              HasSubstr("simulation.events: has to be a list"));
}

}  // namespace
}  // namespace spark::sim
