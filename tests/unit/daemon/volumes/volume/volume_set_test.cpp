// Reloading the set of volumes. The workers do nothing, so no volume gets beyond `waiting`.
#include "daemon/volumes/volume/volume_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>

#include "base/file.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/volumes/adapters/worker_seams.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/fake_seams.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark::volumes {
namespace {

using config::Action;
using testing::ElementsAre;

config::Config read(const std::string& target, const std::string& volumes) {
  auto config = config::parse(
      "version: 1\ntargets:\n  rose: {address: 192.0.2.1" + target + "}\nvolumes:\n" + volumes, "test.yaml");
  EXPECT_TRUE(config) << config.error().message();
  return config.value_or(config::Config{});
}

std::string volume(const std::string& name, const std::string& keys = "") {
  return "  " + name + ": {target: rose, subsystem: s-" + name + ", mount: /nowhere/" + name + keys + "}\n";
}

class VolumeSetTest : public testing::Test {
 protected:
  VolumeSetTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as in the daemon: a worker may end without reading its request
  }
  ~VolumeSetTest() override {
    set.stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(200));
  }

  template <class Value>
  Value wait(boost::asio::awaitable<Value> asked) {
    return await(context, std::move(asked)).value_or(Value{});
  }
  std::vector<Action> apply(const config::Config& wanted) {
    std::vector<Action> actions;
    for (const config::Step& step : wait(set.apply(wanted))) {
      EXPECT_EQ(step.refused, "") << step.volume;
      actions.push_back(step.action);
    }
    return actions;
  }
  bool becomes(const Volume& volume, State state) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (volume.status().state != state && std::chrono::steady_clock::now() < end) {
      context.restart();
      context.run_for(std::chrono::milliseconds(1));
    }
    return volume.status().state == state;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : set.all()) all.push_back(one->settings().name);
    return all;
  }

  boost::asio::io_context context;
  SystemClock clock;
  TemporaryFolder folder;
  ScriptedWorker worker;  // supports no verb, unless a test adds one
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  HostSnapshot snapshot{clock};
  MakeSeams make_seams = [this](const config::Volume& volume, const std::optional<config::Target>&) {
    return worker_seams(runner, snapshot, volume.name, folder.path() / "volumes");
  };
  VolumeSet set{context.get_executor(),     runner, make_seams, clock, folder.path(),
                [](const Volume&, State) {}};
};

TEST_F(VolumeSetTest, OnlyChangedVolumesAreRecreated) {
  set.start(read("", volume("a") + volume("b")));
  const auto a = set.find("a"), b = set.find("b");
  EXPECT_THAT(apply(read("", volume("a") + volume("b", ", options: [noatime]"))),
              ElementsAre(Action::Nothing, Action::Remount));
  EXPECT_EQ(set.find("a"), a);
  EXPECT_NE(set.find("b"), b);
  EXPECT_THAT(set.find("b")->settings().options, ElementsAre("noatime"));
}

TEST_F(VolumeSetTest, ChangedTimersAreAppliedToTheExistingVolumes) {
  set.start(read("", volume("a") + volume("b")));
  const auto a = set.find("a"), b = set.find("b");
  EXPECT_THAT(apply(read(", fast_fail: 10s", volume("a") + volume("b"))),
              ElementsAre(Action::SetLive, Action::SetLive));
  EXPECT_EQ(set.find("a"), a);
  EXPECT_EQ(set.find("b"), b);
  EXPECT_EQ(a->target()->options.fast_fail, std::chrono::seconds(10));
}

TEST_F(VolumeSetTest, AddsRemovesAndOrdersVolumesAsInTheFile) {
  set.start(read("", volume("a") + volume("b")));
  const auto b = set.find("b");
  EXPECT_THAT(apply(read("", volume("c") + volume("b"))),
              ElementsAre(Action::Add, Action::Nothing, Action::Remove));
  EXPECT_THAT(names(), ElementsAre("c", "b"));
  EXPECT_EQ(set.find("b"), b);
}

TEST_F(VolumeSetTest, AVolumeThatLeavesTheHostAfterItsRemovalKeepsTheConnection) {
  set.start(read("", volume("a") + volume("b")));
  const auto a = set.find("a");
  EXPECT_FALSE(a->context().seams.neighbours.subsystem_shared());
  EXPECT_THAT(apply(read("", volume("b"))), ElementsAre(Action::Nothing, Action::Remove));
  EXPECT_TRUE(a->context().seams.neighbours.subsystem_shared());
}

TEST_F(VolumeSetTest, VolumesOfOneTargetShareTheAddressesThatTheyFind) {
  set.start(read("", volume("a") + volume("b")));
  const nvmetcp::Portal moved{"10.0.0.77", 4420};
  set.find("a")->context().seams.snapshot.addresses().learn(moved);
  EXPECT_TRUE(set.find("b")->context().seams.snapshot.addresses().has(moved));
}

TEST_F(VolumeSetTest, VolumesThatAReloadMakesShareThemToo) {
  set.start(read("", volume("z")));
  apply(read(", port: 4421", volume("a") + volume("b")));
  const nvmetcp::Portal moved{"10.0.0.77", 4421};
  set.find("a")->context().seams.snapshot.addresses().learn(moved);
  EXPECT_TRUE(set.find("b")->context().seams.snapshot.addresses().has(moved));
}

TEST_F(VolumeSetTest, OneThatReachesItsTargetAgainEndsTheWaitOfTheOthers) {
  set.start(read("", volume("a") + volume("b")));
  const auto waits = [&] {
    context.restart();
    context.run_for(std::chrono::milliseconds(1));
    return set.find("b")->status().next_attempt.has_value();
  };
  for (int i = 0; i < 60'000 && !waits(); ++i) continue;
  ASSERT_TRUE(set.find("b")->status().next_attempt);
  set.find("a")->context().seams.neighbours.target_is_back();
  EXPECT_TRUE(set.find("b")->requests().is_attempt_due());
}

TEST_F(VolumeSetTest, AVolumeWhoseDownIsNotRecordedDoesNotLeaveTheConfiguration) {
  set.start(read("", volume("a")));  // the workers record nothing
  ASSERT_TRUE(wait(set.find("a")->requests().keep_down("alice")));
  const auto steps = wait(set.apply(read("", volume("b"))));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1].refused, "that it stays down can't be recorded, as its status says");
  EXPECT_THAT(names(), ElementsAre("b", "a"));
}

TEST_F(VolumeSetTest, AVolumeWhoseUpIsNotRecordedStaysMountedAtAReload) {
  FakeWorld world;
  world.superblock.type = "ext4";
  world.superblock.uuid = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
  world.offer("s-a", "192.0.2.1", 4420);
  make_seams = [&](const config::Volume&, const std::optional<config::Target>&) { return fake_seams(world); };
  VolumeSet fresh(context.get_executor(), runner, make_seams, clock, folder.path(),
                  [](const Volume&, State) {});
  fresh.start(read("", volume("a")));
  const auto a = fresh.find("a");
  ASSERT_TRUE(becomes(*a, State::Ready)) << a->status().reason;
  world.unmount_error = Error{Errc::Refused, "in use by python3 (pid 7)", ""};
  boost::asio::co_spawn(context, a->requests().keep_down("alice"), boost::asio::detached);
  context.restart();
  while (world.intent->up) context.run_one();
  world.intent_error = Error{Errc::Failed, "the state folder is read-only", ""};
  while (world.count("record up") == 0) context.run_one();
  ASSERT_TRUE(becomes(*a, State::Ready));
  world.unmount_error.reset();  // its users have gone
  const auto steps = wait(fresh.apply(read("", volume("a", ", options: [noatime]"))));
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].refused, "that it is to be up can't be recorded, as its status says");
  EXPECT_EQ(world.count("unmount"), 1);
  EXPECT_TRUE(a->context().wanted_up);
  EXPECT_EQ(a->status().state, State::Ready);
  fresh.stop();
  context.restart();
  context.run_for(std::chrono::milliseconds(50));
}

TEST_F(VolumeSetTest, AVolumeTakenDownStaysDownAcrossAReload) {
  std::filesystem::create_directories(folder.path() / "volumes");
  const Intent down{false, clock.wall(), "alice"};
  ASSERT_TRUE(write_file_atomically(folder.path() / "volumes/a.intent.json", json::serialize(to_json(down))));
  set.start(read("", volume("a") + volume("b")));
  EXPECT_THAT(apply(read(", keep_alive: 7s", volume("a") + volume("b"))),
              ElementsAre(Action::Reconnect, Action::Reconnect));
  EXPECT_TRUE(becomes(*set.find("a"), State::Down));
  EXPECT_EQ(set.find("a")->status().taken_down->by, "alice");
  EXPECT_NE(set.find("b")->status().state, State::Down);
}

TEST_F(VolumeSetTest, AnInvalidIntentIsNotTreatedAsUp) {
  std::filesystem::create_directories(folder.path() / "volumes");
  for (const char* content : {"", "{}", "{\"wanted\": \"sideways\"}"}) {
    ASSERT_TRUE(write_file_atomically(folder.path() / "volumes/a.intent.json", content));
    VolumeSet fresh(context.get_executor(), runner, make_seams, clock, folder.path(),
                    [](const Volume&, State) {});
    fresh.start(read("", volume("a")));
    EXPECT_TRUE(becomes(*fresh.find("a"), State::Refused)) << content;
    EXPECT_THAT(fresh.find("a")->status().reason, testing::HasSubstr("a.intent.json"));
    fresh.stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(20));
  }
}

TEST_F(VolumeSetTest, GuardsOfRemovedMountPointsAreRemovedAtAReloadAndAtTheStart) {
  worker.on("remove-guards", "cat >kept.$n; echo '{\"result\": {}}'");
  const auto kept = [&](const char* call) {
    const auto request = parse_json_object(read_file(worker.folder() / call).value_or("{}"));
    return request && request->contains("keep") ? json::serialize(request->at("keep")) : "";
  };
  set.start(read("", volume("a") + volume("b")));
  while (kept("kept.1").empty()) context.run_one_for(std::chrono::milliseconds(10));
  EXPECT_EQ(kept("kept.1"), R"(["/nowhere/a","/nowhere/b"])");
  EXPECT_THAT(apply(read("", volume("b"))), ElementsAre(Action::Nothing, Action::Remove));
  EXPECT_EQ(kept("kept.2"), R"(["/nowhere/b"])");
}

TEST_F(VolumeSetTest, APlanChangesNothing) {
  set.start(read("", volume("a")));
  const auto a = set.find("a");
  const auto wanted = read(", keep_alive: 7s", volume("b"));
  const auto steps = wait(set.plan(wanted));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].action, Action::Add);
  EXPECT_EQ(steps[1].action, Action::Remove);
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_EQ(set.find("a"), a);
  EXPECT_EQ(a->target()->options.keep_alive, std::chrono::seconds(5));
}

}  // namespace
}  // namespace spark::volumes
