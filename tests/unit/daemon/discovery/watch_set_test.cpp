#include "daemon/discovery/watch_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvmetcp/sysfs/registry.hpp"
#include "tests/support/run_on.hpp"

namespace spark::discovery {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A host whose connections were made by an earlier daemon, to targets that do not answer now.
struct FormerHost {
  std::vector<nvmetcp::Controller> there;
  std::vector<std::string> ended;

  void add(const std::string& name, const nvmetcp::Portal& portal, const std::string& owner = nvmetcp::kOwner,
           bool is_discovery = true) {
    nvmetcp::Controller one;
    one.name = name;
    one.transport = "tcp";
    one.state = "connecting";
    one.portal = portal;
    one.owner = owner;
    one.is_discovery = is_discovery;
    there.push_back(one);
  }
};

class FormerActions final : public Actions {
 public:
  explicit FormerActions(FormerHost& host) : host_(host) {}
  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal, std::string) override {
    co_return fail(Errc::Unavailable, "no answer");
  }
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string) override {
    co_return fail(Errc::Unavailable, "no answer");
  }
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal, std::string) override {
    co_return fail(Errc::Unavailable, "no answer");
  }
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string) override {
    host_.ended.push_back(controller);
    co_return Change::Done;
  }
  Result<std::vector<nvmetcp::Controller>> controllers() override { return host_.there; }
  std::string autoconnect_rule() override { return ""; }

 private:
  FormerHost& host_;
};

class WatchSetTest : public testing::Test {
 protected:
  WatchSetTest() { use("10.0.0.5"); }
  ~WatchSetTest() override {
    watches.stop();
    run_what_is_ready();
  }
  void use(const std::string& address) {
    config.targets["rose"].name = "rose";
    config.targets["rose"].portals = {{address, 4420}};
    config.volumes.resize(1);
    config.volumes[0].nvme = config::NvmeSource{"rose", "datasets", 1, "", ""};
  }
  // All that can be done without waiting.
  void run_what_is_ready() {
    context.restart();
    context.poll();
  }

  boost::asio::io_context context;
  SystemClock clock;
  FormerHost host;
  config::Config config;
  WatchSet watches{context.get_executor(),
                   [this](const config::Target&) { return std::make_unique<FormerActions>(host); }, clock,
                   [](const TargetWatch&, const std::set<std::string>&) {}};
};

// The kernel would keep trying to restore them.
TEST_F(WatchSetTest, ConnectionsOfAnEarlierDaemonToTargetsThatAreNotConfiguredAnyMoreAreEnded) {
  host.add("nvme3", {"10.0.0.5", 4420});
  host.add("nvme4", {"10.0.0.4", 4420});
  host.add("nvme5", {"10.0.0.5", 8009});
  host.add("nvme6", {"10.0.0.6", 4420}, "stas");
  host.add("nvme7", {"10.0.0.7", 4420}, "");
  host.add("nvme8", {"10.0.0.8", 4420}, nvmetcp::kOwner, false);
  watches.apply(config);
  run_what_is_ready();
  EXPECT_THAT(host.ended, UnorderedElementsAre("nvme4", "nvme5"));
}

TEST_F(WatchSetTest, ANameMayLeadToAnyAddressSoNoConnectionIsEnded) {
  use("rose.lan");
  host.add("nvme4", {"10.0.0.4", 4420});
  watches.apply(config);
  run_what_is_ready();
  EXPECT_THAT(host.ended, IsEmpty());
}

TEST_F(WatchSetTest, WithoutAnyTargetAllAreEnded) {
  config = {};
  host.add("nvme3", {"10.0.0.5", 4420});
  watches.apply(config);
  run_what_is_ready();
  EXPECT_THAT(host.ended, UnorderedElementsAre("nvme3"));
}

}  // namespace
}  // namespace spark::discovery
