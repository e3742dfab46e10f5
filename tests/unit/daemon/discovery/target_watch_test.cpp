#include "daemon/discovery/target_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nvmetcp/sysfs/registry.hpp"
#include "tests/support/run_on.hpp"

namespace spark::discovery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A target with a discovery service, and a host that may connect to it.
struct FakeTarget {
  std::set<std::string> offered = {"datasets"};
  std::optional<Error> refuses;  // for every connect
  std::set<std::string> dead;    // unresponsive addresses
  std::optional<nvmetcp::Controller> connection;
  std::string rule;  // nvme-cli's udev rule
  std::vector<std::string> calls;
  std::function<void()> while_connecting = [] {}, while_reading = [] {};
  bool can_look = true;
};

class FakeActions final : public Actions {
 public:
  explicit FakeActions(FakeTarget& target) : target_(target) {}

  asio::awaitable<Result<nvmetcp::Connection>> watch(nvmetcp::Portal portal, std::string) override {
    target_.calls.push_back("watch " + portal.address);
    if (target_.refuses) co_return fail(*target_.refuses);
    if (target_.dead.contains(portal.address)) {
      co_return fail(Errc::Unavailable, "reaching " + portal.address + ": no route to host");
    }
    target_.while_connecting();
    nvmetcp::Controller made;
    made.name = "nvme5";
    made.state = "live";
    made.portal = {"10.0.0.5", 4420};
    made.owner = nvmetcp::kOwner;
    made.is_discovery = true;
    target_.connection = made;
    co_return nvmetcp::Connection{"nvme5", Change::Done, {}};
  }
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> read(std::string controller) override {
    target_.calls.push_back("read " + controller);
    const auto log = log_now();
    target_.while_reading();
    co_return log;
  }
  asio::awaitable<Result<nvmetcp::DiscoveryLog>> ask(nvmetcp::Portal portal, std::string) override {
    target_.calls.push_back("ask " + portal.address);
    if (target_.refuses) co_return fail(*target_.refuses);
    co_return log_now();
  }
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string) override {
    target_.calls.push_back("disconnect " + controller);
    target_.connection.reset();
    co_return Change::Done;
  }
  Result<std::vector<nvmetcp::Controller>> controllers() override {
    if (!target_.can_look) return fail(Errc::Failed, "sysfs can't be read");
    if (!target_.connection) return std::vector<nvmetcp::Controller>{};
    return std::vector<nvmetcp::Controller>{*target_.connection};
  }
  std::string autoconnect_rule() override { return target_.rule; }

 private:
  nvmetcp::DiscoveryLog log_now() const {
    nvmetcp::DiscoveryLog log;
    for (const std::string& nqn : target_.offered)
      log.entries.push_back({nqn, nvmetcp::SubsystemKind::Io, "tcp", "ipv4", {"10.0.0.5", 4420}});
    log.entries.push_back({"far", nvmetcp::SubsystemKind::Io, "rdma", "ipv4", {"10.0.0.5", 4420}});
    log.entries.push_back({"more", nvmetcp::SubsystemKind::Referral, "tcp", "ipv4", {"10.0.0.6", 8009}});
    return log;
  }
  FakeTarget& target_;
};

class TargetWatchTest : public testing::Test {
 protected:
  TargetWatchTest() {
    settings.name = "rose";
    settings.portals = {{"10.0.0.5", 4420}};
    timings.first_retry = timings.longest_retry = Duration(2);
    timings.look = Duration(1);
    timings.read_again = timings.ask_again = std::chrono::hours(1);
  }
  ~TargetWatchTest() override {
    if (watch) watch->stop();
    context.restart();
    context.run_for(std::chrono::milliseconds(50));
  }
  void start() {
    watch = std::make_shared<TargetWatch>(context.get_executor(), settings,
                                          std::make_unique<FakeActions>(target), clock, timings,
                                          [this](const TargetWatch& changed, const std::set<std::string>&) {
                                            changes.push_back(changed.status().offered);
                                          });
    watch->start();
  }
  bool hears() {
    return run_until(context, [&] { return watch->status().asked_at && watch->status().reason.empty(); });
  }
  long count(const std::string& call) const { return std::ranges::count(target.calls, call); }
  void tell(const Uevent& event) { watch->heard(event); }
  void run_a_moment() {
    context.restart();
    context.run_for(std::chrono::milliseconds(30));
  }

  boost::asio::io_context context;
  SystemClock clock;
  FakeTarget target;
  config::Target settings;
  Timings timings;
  std::vector<std::set<std::string>> changes;
  std::shared_ptr<TargetWatch> watch;
};

const Uevent kChanged{"nvme5", "change", "", "0x70f002"};

TEST_F(TargetWatchTest, ConnectsToTheDiscoveryServiceAndReadsTheLogOnce) {
  start();
  ASSERT_TRUE(hears());
  run_a_moment();
  EXPECT_THAT(target.calls, ElementsAre("watch 10.0.0.5", "read nvme5"));
  EXPECT_THAT(watch->status().offered, ElementsAre("datasets")) << "I/O over TCP only";
  EXPECT_EQ(watch->status().controller, "nvme5");
  EXPECT_THAT(changes, IsEmpty()) << "the first look is no change";
}

TEST_F(TargetWatchTest, AConnectionThatStaysDownIsReplacedAtTheFirstPortalThatAnswers) {
  timings.doubt = Duration(5);
  settings.portals.push_back({"10.0.0.6", 4420});
  start();
  ASSERT_TRUE(hears());
  target.connection->state = "connecting";
  target.dead = {"10.0.0.5"};
  EXPECT_TRUE(run_until(context, [&] { return count("watch 10.0.0.6") == 1; }));
  EXPECT_EQ(count("watch 10.0.0.5"), 2) << "in their order";
  EXPECT_EQ(count("disconnect nvme5"), 1);
  EXPECT_THAT(watch->status().offered, ElementsAre("datasets")) << "unknown is not empty";
  EXPECT_TRUE(hears());
  EXPECT_EQ(count("read nvme5"), 2) << "what was not heard meanwhile is read";
}

TEST_F(TargetWatchTest, AConnectionThatStaysDownIsReplacedAfterResolvingTheNameAgain) {
  timings.doubt = Duration(5);
  settings.portals = {{"rose.lan", 4420}};
  start();
  ASSERT_TRUE(hears());
  target.connection->state = "connecting";
  EXPECT_TRUE(run_until(context, [&] { return count("watch rose.lan") == 2; }));
  EXPECT_EQ(count("disconnect nvme5"), 1);
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(TargetWatchTest, AConnectionThatSoonRecoversIsKept) {
  timings.doubt = std::chrono::hours(1);
  settings.portals.push_back({"10.0.0.6", 4420});
  start();
  ASSERT_TRUE(hears());
  target.connection->state = "connecting";
  ASSERT_TRUE(run_until(context, [&] { return !watch->status().reason.empty(); }));
  target.connection->state = "live";
  ASSERT_TRUE(hears());
  EXPECT_THAT(target.calls, ElementsAre("watch 10.0.0.5", "read nvme5", "read nvme5"));
}

TEST_F(TargetWatchTest, ADownConnectionToTheOnlyAddressIsLeftToTheKernel) {
  timings.doubt = Duration(5);
  start();
  ASSERT_TRUE(hears());
  target.connection->state = "connecting";
  run_a_moment();
  EXPECT_EQ(count("disconnect nvme5"), 0);
  EXPECT_EQ(count("watch 10.0.0.5"), 1);
}

TEST_F(TargetWatchTest, AChangeEventRereadsTheLogAtOnce) {
  timings.look = std::chrono::hours(1);
  start();
  ASSERT_TRUE(hears());
  target.offered.insert("models");
  tell({"nvme9", "change", "", "0x70f002"});
  run_a_moment();
  EXPECT_THAT(changes, IsEmpty()) << "another's controller";
  tell(kChanged);
  EXPECT_TRUE(run_until(context, [&] { return changes.size() == 1; }));
  EXPECT_THAT(changes.front(), ElementsAre("datasets", "models"));
}

TEST_F(TargetWatchTest, AChangeDuringAReadOfTheLogCausesAnotherRead) {
  timings.look = std::chrono::hours(1);
  target.while_reading = [&] {
    if (target.offered.insert("models").second) tell(kChanged);
  };
  start();
  EXPECT_TRUE(run_until(context, [&] { return changes.size() == 1; }));
  EXPECT_EQ(count("read nvme5"), 2);
}

TEST_F(TargetWatchTest, TheLogIsRereadWhenTheLinkIsBack) {
  start();
  ASSERT_TRUE(hears());
  target.connection->state = "connecting";
  ASSERT_TRUE(run_until(context, [&] { return !watch->status().reason.empty(); }));
  EXPECT_EQ(watch->status().reason, "nvme5 is connecting");
  EXPECT_THAT(watch->status().offered, ElementsAre("datasets")) << "unknown is not empty";
  target.offered = {"models"};
  target.connection->state = "live";
  EXPECT_TRUE(run_until(context, [&] { return changes.size() == 1; }));
  EXPECT_EQ(count("watch 10.0.0.5"), 1) << "the kernel reconnects";
}

TEST_F(TargetWatchTest, AMissingConnectionIsReplacedUnlessSysfsCannotBeRead) {
  start();
  ASSERT_TRUE(hears());
  target.can_look = false;
  run_a_moment();
  EXPECT_EQ(count("watch 10.0.0.5"), 1);
  target.can_look = true;
  target.connection.reset();
  EXPECT_TRUE(run_until(context, [&] { return count("read nvme5") == 2; }));
}

TEST_F(TargetWatchTest, AnUnreachableTargetIsRetriedIndefinitely) {
  target.refuses = Error{Errc::Unavailable, "reaching 10.0.0.5:4420: connection refused", ""};
  start();
  EXPECT_TRUE(run_until(context, [&] { return count("watch 10.0.0.5") > 3; }));
  EXPECT_THAT(watch->status().reason, HasSubstr("connection refused"));
  EXPECT_FALSE(watch->status().asked_at);
  target.refuses.reset();
  EXPECT_TRUE(hears());
}

TEST_F(TargetWatchTest, ATargetWithoutADiscoveryServiceIsNotRetried) {
  target.refuses = Error{Errc::Unsupported, "10.0.0.5:4420 has no discovery service", ""};
  start();
  run_a_moment();
  EXPECT_EQ(count("watch 10.0.0.5"), 1);
}

TEST_F(TargetWatchTest, WithNvmeClisUdevRuleTheLogIsPolledWithoutAPermanentConnection) {
  target.rule = "/usr/lib/udev/rules.d/70-nvmf-autoconnect.rules";
  timings.ask_again = Duration(2);
  start();
  EXPECT_TRUE(run_until(context, [&] { return count("ask 10.0.0.5") > 1; }));
  EXPECT_EQ(count("watch 10.0.0.5"), 0);
  EXPECT_THAT(watch->status().reason, HasSubstr("would connect everything that the target offers"));
  target.offered.insert("models");
  EXPECT_TRUE(run_until(context, [&] { return changes.size() == 1; }));
}

TEST_F(TargetWatchTest, AUdevRuleInstalledLaterEndsThePermanentConnection) {
  start();
  ASSERT_TRUE(hears());
  target.rule = "/etc/udev/rules.d/70-nvmf-autoconnect.rules";
  EXPECT_TRUE(run_until(context, [&] { return count("ask 10.0.0.5") == 1; }));
  EXPECT_FALSE(target.connection);
  EXPECT_EQ(watch->status().controller, "");
}

// Without it the rule would connect everything as soon as the target reports a change.
TEST_F(TargetWatchTest, WithAUdevRuleTheConnectionOfAnEarlierDaemonIsEndedAndOtherProgramsKeepTheirs) {
  target.rule = "/usr/lib/udev/rules.d/70-nvmf-autoconnect.rules";
  nvmetcp::Controller left;
  left.name = "nvme5";
  left.state = "live";
  left.is_discovery = true;
  left.owner = "stas";
  target.connection = left;
  start();
  ASSERT_TRUE(run_until(context, [&] { return count("ask 10.0.0.5") == 1; }));
  EXPECT_EQ(count("disconnect nvme5"), 0);
  watch->stop();
  run_a_moment();
  target.connection->owner = nvmetcp::kOwner;
  start();
  EXPECT_TRUE(run_until(context, [&] { return count("ask 10.0.0.5") == 2; }));
  EXPECT_EQ(count("disconnect nvme5"), 1);
}

TEST_F(TargetWatchTest, AnotherTargetsConnectionThatGotItsNameIsNotItsOwn) {
  start();
  ASSERT_TRUE(hears());
  target.connection->portal = {"10.0.0.9", 4420};
  EXPECT_TRUE(run_until(context, [&] { return count("watch 10.0.0.5") == 2; }));
  EXPECT_EQ(count("disconnect nvme5"), 0);
}

TEST_F(TargetWatchTest, StoppingLeavesTheConnectionForTheNextDaemon) {
  start();
  ASSERT_TRUE(hears());
  watch->stop();
  run_a_moment();
  EXPECT_TRUE(target.connection);
}

TEST_F(TargetWatchTest, EndingTheWatchDisconnects) {
  start();
  ASSERT_TRUE(hears());
  watch->end();
  EXPECT_TRUE(run_until(context, [&] { return !target.connection; }));
}

TEST_F(TargetWatchTest, EndingTheWatchDuringAConnectLeavesNoConnection) {
  target.while_connecting = [&] { watch->end(); };
  start();
  EXPECT_TRUE(run_until(context, [&] { return count("disconnect nvme5") == 1; }));
  EXPECT_FALSE(target.connection);
}

}  // namespace
}  // namespace spark::discovery
