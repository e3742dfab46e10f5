#include "daemon/config/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/parse.hpp"

namespace spark::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kUuid[] = "2f7c0000-0000-0000-0000-000000000001";
constexpr char kOtherUuid[] = "2f7c0000-0000-0000-0000-000000000002";

Config read(const std::string& target, const std::string& volume, const std::string& rest = "") {
  auto config =
      parse("version: 1\ntargets:\n  rose: {address: 10.0.0.5" + target +
                "}\nvolumes:\n  data: {target: rose, subsystem: s, mount: /mnt/data" + volume + "}\n" + rest,
            "test.yaml");
  EXPECT_TRUE(config) << config.error().message();
  return config.value_or(Config{});
}

std::vector<InForce> in_force(const Config& config) {
  std::vector<InForce> all;
  for (const Volume& volume : config.volumes) {
    const json::object target =
        volume.nvme ? to_json(config.targets.at(volume.nvme->target)) : json::object{};
    all.push_back({volume.name, to_json(volume), target, "ext4", kUuid});
  }
  return all;
}

// The planned step for the volume if these keys are added to target and volume.
Step step(const std::string& target, const std::string& volume) {
  const auto steps = plan_volumes(in_force(read("", "")), read(target, volume));
  EXPECT_EQ(steps.size(), 1U);
  return steps.at(0);
}

TEST(Plan, TheSameConfigurationChangesNothing) {
  const Config config = read(", keep_alive: 7s", ", options: [noatime]");
  const auto steps = plan_volumes(in_force(config), config);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].action, Action::Nothing);
  EXPECT_THAT(steps[0].changes, IsEmpty());
}

TEST(Plan, ChangedTimersAndPoliciesAreSetLiveAndListed) {
  const Step timers = step(", reconnect_delay: 3s, controller_loss: 30s, fast_fail: 10s", ", on_loss: hold");
  EXPECT_EQ(timers.action, Action::SetLive);
  EXPECT_THAT(timers.changes, ElementsAre("controller_loss: never -> 30s", "fast_fail: off -> 10s",
                                          "on_loss: remount -> hold", "reconnect_delay: 2s -> 3s"));
}

TEST(Plan, AChangedConnectOptionOrNamespaceRequiresAReconnect) {
  for (const char* key :
       {", keep_alive: 7s", ", io_queues: 2", ", interface: eth1", ", port: 4421", ", digests: {data: true}",
        ", auth: {host_key_file: /etc/k}", ", tls: {psk_file: /etc/k}"}) {
    EXPECT_EQ(step(key, "").action, Action::Reconnect) << key;
  }
  EXPECT_EQ(step("", ", namespace: 2").action, Action::Reconnect);
}

TEST(Plan, AChangedMountSettingRequiresOnlyARemount) {
  for (const char* key : {", options: [noatime]", ", access: exclusive", ", filesystem: {type: xfs}"}) {
    EXPECT_EQ(step("", key).action, Action::Remount) << key;
  }
}

TEST(Plan, TheMostDisruptiveChangeDecidesTheAction) {
  EXPECT_EQ(step(", fast_fail: 10s, keep_alive: 7s", ", options: [noatime]").action, Action::Reconnect);
  EXPECT_EQ(step(", fast_fail: 10s", ", options: [noatime]").action, Action::Remount);
  EXPECT_EQ(step(", io_policy: round-robin", "").action, Action::SetLive);
}

TEST(Plan, PinningTheMountedFileSystemNeedsNoRemount) {
  EXPECT_EQ(step("", std::string(", filesystem: {uuid: ") + kUuid + "}").action, Action::SetLive);
  EXPECT_EQ(step("", std::string(", filesystem: {uuid: ") + kOtherUuid + "}").action, Action::Remount);
}

TEST(Plan, RenamingATargetNeedsNoReconnect) {
  Config renamed = read("", "");
  auto target = renamed.targets.extract("rose");
  target.key() = target.mapped().name = "rosa";
  renamed.targets.insert(std::move(target));
  renamed.volumes[0].nvme->target = "rosa";
  const auto steps = plan_volumes(in_force(read("", "")), renamed);
  EXPECT_EQ(steps.at(0).action, Action::SetLive);
  EXPECT_THAT(steps.at(0).changes, ElementsAre("target: rose -> rosa"));
}

TEST(Plan, StepsFollowTheFilesOrderAndRemovedVolumesComeLast) {
  Config wanted = read("", "");
  wanted.volumes[0].name = "fresh";
  const auto steps = plan_volumes(in_force(read("", "")), wanted);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].volume, "fresh");
  EXPECT_EQ(steps[0].action, Action::Add);
  EXPECT_EQ(steps[1].volume, "data");
  EXPECT_EQ(steps[1].action, Action::Remove);
}

TEST(Plan, OnlyRemountReconnectAndRemoveTakeTheMountAway) {
  EXPECT_TRUE(takes_mount_away(Action::Remount) && takes_mount_away(Action::Reconnect) &&
              takes_mount_away(Action::Remove));
  EXPECT_FALSE(takes_mount_away(Action::Nothing) || takes_mount_away(Action::SetLive) ||
               takes_mount_away(Action::Add));
}

TEST(Plan, ChangedSettingsOutsideVolumesAreListed) {
  const Config before = read("", "", "cache: {capacity: 1GiB}\ndatasets:\n  a: {volume: data, path: a}\n");
  const Config after = read("", "", "cache: {capacity: 2GiB}\ndatasets:\n  b: {volume: data, path: b}\n");
  EXPECT_THAT(changed_settings(to_json(before), after),
              ElementsAre("cache.capacity: 1073741824 -> 2147483648", "datasets.a.exclude: [] -> none",
                          "datasets.a.links: keep -> none", "datasets.a.path: a -> none",
                          "datasets.a.volume: data -> none", "datasets.b.exclude: none -> []",
                          "datasets.b.links: none -> keep", "datasets.b.path: none -> b",
                          "datasets.b.volume: none -> data"));
  EXPECT_THAT(changed_settings(to_json(before), before), IsEmpty());
  const Config watched = read("", "",
                              "cache: {capacity: 1GiB}\ndatasets:\n  a: {volume: data, path: a}\nmetrics: "
                              "{listen: 127.0.0.1:9464}\n");
  EXPECT_THAT(changed_settings(to_json(before), watched),
              ElementsAre("metrics.listen: off -> 127.0.0.1:9464"));
}

TEST(Plan, JsonHasNullForAStepThatIsNotRefused) {
  Plan plan;
  plan.volumes = {{"a", Action::SetLive, {"x: 1 -> 2"}, ""},
                  {"b", Action::Remove, {}, "in use by cat (pid 7)"}};
  const auto object = to_json(plan);
  EXPECT_EQ(
      json::serialize(object),
      R"json({"volumes":[{"name":"a","action":"set live","changes":["x: 1 -> 2"],"refused":null},)json"
      R"json({"name":"b","action":"remove","changes":[],"refused":"in use by cat (pid 7)"}],"settings":[]})json");
}

}  // namespace
}  // namespace spark::config
