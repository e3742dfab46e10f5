// `host new-identity`: asks, keeps the old files, and is refused while the old identity is in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using testing::HasSubstr;

constexpr char kFresh[] = "2f7c1d2e-0000-4000-8000-000000000001";

class NewIdentity : public testing::Test {
 protected:
  NewIdentity() {
    program.context.root = host.files.root();
    program.context.is_root = true;
    host.files.write("proc/self/mountinfo", "");
    host.files.write("proc/sys/kernel/random/uuid", kFresh);
    host.files.write("config.yaml",
                     "version: 1\ntargets: {rose: {address: 192.168.0.100}}\nvolumes:\n"
                     "  models: {target: rose, subsystem: raid5-data, mount: /mnt/models}\n");
    program.client.answer("GET /v1/status", 200,
                          R"({"volumes": [{"name": "models", "kind": "nvme-tcp", "state": "down"},
                                          {"name": "nas", "kind": "nfs", "state": "ready"}]})");
  }
  int run(std::vector<std::string> options = {"--yes"}) {
    options.insert(options.begin(),
                   {"--config", (host.files.root() / "config.yaml").native(), "host", "new-identity"});
    return program.run(options);
  }
  void expect_refused(const std::string& words) {
    EXPECT_EQ(run(), 7);
    EXPECT_THAT(program.errors(), HasSubstr(words));
    EXPECT_EQ(host.files.read("etc/nvme/hostnqn"), test::test_host().nqn);
    EXPECT_FALSE(host.files.has("etc/nvme/hostnqn.old"));
  }

  test::FakeHost host;
  Program program;
};

TEST_F(NewIdentity, AsksBeforeTheChangeAndKeepsTheOldFiles) {
  program.in.str("yes\n");
  EXPECT_EQ(run({}), 0) << program.errors();
  expect_golden_screen("new-identity.txt", program.errors() + "\n" + program.output());
  EXPECT_EQ(host.files.read("etc/nvme/hostnqn"), std::string("nqn.2014-08.org.nvmexpress:uuid:") + kFresh);
  EXPECT_EQ(host.files.read("etc/nvme/hostid"), kFresh);
  EXPECT_EQ(host.files.read("etc/nvme/hostnqn.old"), test::test_host().nqn);
  EXPECT_EQ(host.files.read("etc/nvme/hostid.old"), test::test_host().id);
}

TEST_F(NewIdentity, NothingChangesWithoutAYes) {
  for (const char* typed : {"", "no\n", "y\n"}) {
    program.in.clear();
    program.in.str(typed);
    EXPECT_EQ(run({}), 1);
  }
  EXPECT_EQ(host.files.read("etc/nvme/hostid"), test::test_host().id);
}

TEST_F(NewIdentity, AHostWithoutOneGetsOne) {
  host.files.remove("etc/nvme");
  EXPECT_EQ(run({"--yes", "--json"}), 0) << program.errors();
  const auto answer = parse_json_object(program.output());
  ASSERT_TRUE(answer) << program.output();
  EXPECT_EQ(get_string(*answer, "id"), kFresh);
  EXPECT_TRUE(get_array(*answer, "backups")->empty());
  EXPECT_EQ(host.files.read("etc/nvme/hostid"), kFresh);
}

TEST_F(NewIdentity, AHostWithoutOneGetsOneWhileItsVolumesWaitForIt) {
  host.files.remove("etc/nvme");
  Program waiting;
  waiting.context.root = host.files.root();
  waiting.context.is_root = true;
  waiting.client.answer("GET /v1/status", 200,
                        R"({"volumes": [{"name": "models", "kind": "nvme-tcp", "state": "waiting"}]})");
  EXPECT_EQ(waiting.run({"host", "new-identity", "--yes"}), 0) << waiting.errors();
  EXPECT_EQ(host.files.read("etc/nvme/hostid"), kFresh);
}

TEST_F(NewIdentity, IsRefusedWhileAVolumeIsUp) {
  Program busy;
  busy.context.root = host.files.root();
  busy.context.is_root = true;
  busy.client.answer("GET /v1/status", 200,
                     R"({"volumes": [{"name": "models", "kind": "nvme-tcp", "state": "waiting"}]})");
  EXPECT_EQ(busy.run({"host", "new-identity", "--yes"}), 7);
  EXPECT_THAT(busy.errors(), HasSubstr("volumes are up: models"));
  EXPECT_FALSE(host.files.has("etc/nvme/hostnqn.old"));
}

TEST_F(NewIdentity, IsRefusedWhileAnythingIsConnected) {
  auto local = test::tcp_controller("nvme0", "nqn.disk");
  local.transport = "pcie";
  host.files.add_controller(local);
  host.files.add_controller(test::tcp_controller("nvme3", "raid5-data", "connecting"));
  expect_refused("nvme3 (raid5-data, connecting)");
}

TEST_F(NewIdentity, IsRefusedWhileAVolumeIsMountedAlsoWithoutADaemon) {
  Program alone;
  alone.context.root = host.files.root();
  alone.context.is_root = true;
  alone.client.fail_once("GET /v1/status", {Errc::Unavailable, "no daemon listens there", ""});
  host.files.write("proc/self/mountinfo", "36 25 259:7 / /mnt/models rw - ext4 /dev/nvme3n1 rw");
  EXPECT_EQ(
      alone.run({"--config", (host.files.root() / "config.yaml").native(), "host", "new-identity", "--yes"}),
      7);
  EXPECT_THAT(alone.errors(), HasSubstr("models on /mnt/models"));
}

TEST_F(NewIdentity, NeedsRoot) {
  program.context.is_root = false;
  EXPECT_EQ(run(), 1);
  EXPECT_FALSE(host.files.has("etc/nvme/hostnqn.old"));
}

}  // namespace
}  // namespace spark::cli
