// doctor's findings about the daemon.
#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;

TEST_F(Doctor, ReportsAStoppedDaemon) {
  fake.status.clear();
  fake.files.write("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path");
  expect("daemon", {"does not run", "systemctl enable --now spark-staged"});
}

TEST_F(Doctor, ReportsAStoppedDaemonThatOnlyStages) {
  fake.status.clear();
  fake.files.write("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path");
  fake.config.volumes.clear();
  EXPECT_TRUE(found("daemon").empty());
  fake.config.datasets["photos"] = {};
  expect("daemon", {"does not run", "nothing is staged"});
}

TEST_F(Doctor, ADaemonThatAnswersFromAnotherNetworkNamespaceRuns) {
  fake.files.write("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path");
  EXPECT_TRUE(found("daemon").empty());
}

TEST_F(Doctor, ADaemonThatDoesNotAnswerIsNotFine) {
  fake.status.clear();
  expect("daemon", {"runs and does not answer", "journalctl"});
  fake.daemon_error = Errc::Denied;
  EXPECT_TRUE(found("daemon").empty());
  EXPECT_THAT(join(examine(fake.host()).unknown, "\n"), HasSubstr("what the daemon reports"));
}

}  // namespace
}  // namespace spark::doctor
