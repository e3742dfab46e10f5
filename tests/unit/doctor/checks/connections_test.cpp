// doctor's findings about existing connections.
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Doctor, ComparesConnectionsWithTheConfiguration) {
  fake.files.add_controller(test::tcp_controller("nvme4", "raid5-data"));
  fake.files.write("sys/class/nvme/nvme4/ctrl_loss_tmo", "600");
  expect("connection", {"nvme4 (raid5-data)", "controller_loss is 600, not off"});
}

TEST_F(Doctor, ReportsConnectionsThatAreNotLiveOrHaveALossTimeout) {
  fake.files.add_controller(test::tcp_controller("nvme4", "foreign", "connecting"));
  fake.files.write("sys/class/nvme/nvme4/ctrl_loss_tmo", "600");
  fake.files.write("sys/class/nvme/nvme4/queue_count", "21");
  const std::string all = join(found("connection"), "\n");
  EXPECT_THAT(all, HasSubstr("'connecting', not live"));
  EXPECT_THAT(all, HasSubstr("given up 600 s after"));
  EXPECT_THAT(all, HasSubstr("20 I/O queues"));
}

class Connections : public Doctor {
 protected:
  // A correct connection, of no configured volume, or of the configured volume "raid5-data".
  void connect(const std::string& subsystem, const char* kato, const char* queues) {
    fake.files.add_controller(test::tcp_controller("nvme4", subsystem));
    fake.files.write("sys/class/nvme/nvme4/ctrl_loss_tmo", "off");
    fake.files.write("sys/class/nvme/nvme4/kato", kato);
    fake.files.write("sys/class/nvme/nvme4/queue_count", queues);
  }
};

TEST_F(Connections, AcceptsUsualSettingsOfAForeignConnection) {
  connect("foreign", "5", "9");
  EXPECT_THAT(found("connection"), IsEmpty());
  EXPECT_THAT(join(examine(fake.host()).fine, "; "),
              HasSubstr("1 connection (timeouts, keep-alive, queues)"));
  connect("foreign", "30", "17");
  EXPECT_THAT(found("connection"), IsEmpty());
}

// MikroTik's slot names are the same on each.
TEST_F(Connections, OfTwoTargetsWithOneNameEachHasItsOwnOptions) {
  config::Target other = fake.config.targets["rose"];
  other.name = "iris";
  other.portals = {{"10.0.0.5", 4420}};
  other.options.controller_loss = std::chrono::seconds(600);
  fake.config.targets["iris"] = other;
  config::Volume volume = fake.config.volumes.front();
  volume.name = "second";
  volume.nvme->target = "iris";
  volume.mount = "/mnt/second";
  fake.config.volumes.push_back(volume);
  connect("raid5-data", "5", "9");
  fake.files.write("sys/class/nvme/nvme4/ctrl_loss_tmo", "600");
  EXPECT_THAT(found("connection"), IsEmpty());
  fake.files.write("sys/class/nvme/nvme4/ctrl_loss_tmo", "60");
  expect("connection", {"controller_loss is 60, not 600"});
}

TEST_F(Connections, ReportsAForeignConnectionWithoutKeepAlive) {
  connect("foreign", "0", "9");
  expect("connection", {"nvme4 (foreign) has no keep-alive", "only by a read", "--keep-alive-tmo=5"});
}

TEST_F(Connections, ReportsAForeignConnectionWithALongKeepAlive) {
  connect("foreign", "120", "9");
  expect("connection", {"keep-alive of 120 s", "only after that time", "--keep-alive-tmo=5"});
}

TEST_F(Connections, ReportsAForeignConnectionWithOneQueueForSeveralCpus) {
  connect("foreign", "5", "2");
  expect("connection", {"has 1 I/O queue |", "one CPU", "--nr-io-queues=8"});
  auto host = fake.host();
  host.cpus = 1;
  Report report;
  check_connections(host, report);
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
}

TEST_F(Connections, ReportsAForeignConnectionWithMoreQueuesThanCpus) {
  connect("foreign", "5", "13");
  EXPECT_THAT(found("connection"), IsEmpty());  // of 20
  auto host = fake.host();
  host.cpus = 4;
  Report report;
  check_connections(host, report);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_THAT(report.findings.front().what, HasSubstr("12 I/O queues, each a TCP connection"));
  EXPECT_THAT(report.findings.front().fix, HasSubstr("--nr-io-queues=4"));
}

TEST_F(Connections, ADiscoveryConnectionNeedsNoQueues) {
  connect("nqn.2014-08.org.nvmexpress.discovery", "120", "1");
  EXPECT_THAT(found("connection"), IsEmpty());
}

TEST_F(Connections, ComparesKeepAliveAndQueuesWithTheConfiguration) {
  connect("raid5-data", "5", "9");
  EXPECT_THAT(found("connection"), IsEmpty());
  connect("raid5-data", "15", "9");
  expect("connection", {"keep_alive is 15, not 5", "volumes down NAME, then up NAME"});
  connect("raid5-data", "5", "21");
  expect("connection", {"has 20 I/O queues, not 8 as `io_queues` has it", "connected before with more"});
  connect("raid5-data", "5", "3");
  expect("connection", {"has 2 I/O queues, not 8", "its target grants no more", "write `io_queues: 2`"});
  fake.config.targets["rose"].options.io_queues = 2;
  EXPECT_THAT(found("connection"), IsEmpty());
}

}  // namespace
}  // namespace spark::doctor
