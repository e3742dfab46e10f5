#include "nvmetcp/connect/temporary_discovery_controller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct TemporaryDiscoveryControllerTest : testing::Test {
  TemporaryDiscoveryControllerTest() { host.write("sys/class/nvme/nvme3/state", "live"); }
  // Sends a request in a process that then ends without cleaning up.
  void ask_and_die(const std::string& controller) {
    const pid_t child = ::fork();
    if (child == 0) {
      new TemporaryDiscoveryController(host.root(), controller);
      ::_exit(0);
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  test::FakeSysfs host;
};

TEST_F(TemporaryDiscoveryControllerTest, AControllerInUseOrRemovedIsNotAbandoned) {
  {
    const TemporaryDiscoveryController question(host.root(), "nvme3");
    EXPECT_THAT(abandoned_discovery_controllers(host.root()), IsEmpty());
    host.remove("sys/class/nvme/nvme3");
  }
  EXPECT_FALSE(host.has("run/nvme/spark-stage/nvme3"));
}

TEST_F(TemporaryDiscoveryControllerTest, AControllerThatCouldNotBeRemovedIsAbandoned) {
  { const TemporaryDiscoveryController question(host.root(), "nvme3"); }
  EXPECT_THAT(abandoned_discovery_controllers(host.root()), ElementsAre("nvme3"));
}

TEST_F(TemporaryDiscoveryControllerTest, TheControllerOfADeadProcessIsAbandonedUntilItIsRemoved) {
  ask_and_die("nvme3");
  EXPECT_THAT(abandoned_discovery_controllers(host.root()), ElementsAre("nvme3"));
  EXPECT_THAT(abandoned_discovery_controllers(host.root()), ElementsAre("nvme3"))
      << "its removal may have failed";
  std::filesystem::remove_all(host.root() / "sys/class/nvme/nvme3");
  EXPECT_THAT(abandoned_discovery_controllers(host.root()), IsEmpty());
  EXPECT_FALSE(host.has("run/nvme/spark-stage/nvme3"));
}

TEST_F(TemporaryDiscoveryControllerTest, ALaterControllerOfThatNameIsNotAbandoned) {
  ask_and_die("nvme3");
  std::filesystem::rename(host.root() / "sys/class/nvme/nvme3", host.root() / "sys/class/nvme/nvme4");
  host.write("sys/class/nvme/nvme3/state", "live");
  EXPECT_THAT(abandoned_discovery_controllers(host.root()), IsEmpty());
}

}  // namespace
}  // namespace spark::nvmetcp
