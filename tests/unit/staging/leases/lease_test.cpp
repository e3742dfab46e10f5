#include "staging/leases/lease.hpp"
#include "base/file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

const WallTime kLeaseTime = WallTime(std::chrono::hours(500'000));

TEST(LeaseLife, EndsAtItsExpiry) {
  Lease lease;
  EXPECT_TRUE(is_live(lease, kLeaseTime));
  lease.expires = kLeaseTime;
  EXPECT_FALSE(is_live(lease, kLeaseTime));
  lease.expires = kLeaseTime + std::chrono::seconds(1);
  EXPECT_TRUE(is_live(lease, kLeaseTime));
}

TEST(LeaseLife, EndsWithItsProcess) {
  Lease lease;
  lease.process = process_with(::getpid());
  EXPECT_TRUE(is_live(lease, kLeaseTime));
  ++lease.process.start_time;  // the same PID, another process
  EXPECT_FALSE(is_live(lease, kLeaseTime));

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_start_time(child)) << "ended, not reaped";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(process_start_time(child));
  EXPECT_FALSE(is_running({child, 0})) << "a process that had ended when the lease was asked for";
}

TEST(LeaseLife, AProcessHasALineage) {
  const auto lineage = lineage_of(::getpid());
  ASSERT_GE(lineage.size(), 1U);
  EXPECT_EQ(lineage[0], process_with(::getpid()));
  const bool has_parent = ::getppid() > 1;
  EXPECT_TRUE(!has_parent || lineage.at(1) == process_with(::getppid()));
  EXPECT_TRUE(lineage_of(0).empty());
}

TEST(LeaseLife, AJobsLeaseEndsAtAReboot) {
  Lease lease;
  lease.job = {"slurm", "7", "", {}, boot_id(SystemRoot{})};
  ASSERT_FALSE(lease.job.boot.empty());
  EXPECT_TRUE(is_live(lease, kLeaseTime));
  lease.job.boot = "an earlier one";
  EXPECT_FALSE(is_live(lease, kLeaseTime));
}

class CgroupTest : public testing::Test {
 protected:
  TempFolder folder_;
  const SystemRoot root_{folder_.path()};
  const std::filesystem::path group_ = folder_ / "sys/fs/cgroup/system.slice/job.scope";

  void populate(const char* populated) {
    write_text(group_ / "cgroup.events", std::string("populated ") + populated + "\nfrozen 0\n");
  }
  void put_process(const std::string& line) { write_text(folder_ / "proc/42/cgroup", line); }
};

TEST_F(CgroupTest, TheGroupOfAProcessIsReadFromProc) {
  populate("1");
  put_process("12:cpuset:/old\n0::/system.slice/job.scope\n");
  const auto group = cgroup_of(root_, 42);
  ASSERT_OK(group);
  EXPECT_EQ(group->path, group_);
  EXPECT_NE(group->id, 0U);
}

TEST_F(CgroupTest, AStepOfASlurmJobLeasesForTheJob) {
  const std::string job = "system.slice/slurmstepd.scope/job_7";
  write_text(folder_ / "sys/fs/cgroup" / job / "cgroup.events", "populated 1\n");
  put_process("0::/" + job + "/step_0/user/task_0\n");
  const auto group = cgroup_of(root_, 42);
  ASSERT_OK(group);
  EXPECT_EQ(group->path, folder_ / "sys/fs/cgroup" / job);
}

TEST_F(CgroupTest, TheRootGroupAndOldGroupsAreRefused) {
  put_process("0::/\n");
  EXPECT_KIND(cgroup_of(root_, 42), Errc::Invalid);
  put_process("12:cpuset:/old\n");
  EXPECT_KIND(cgroup_of(root_, 42), Errc::Unsupported);
  EXPECT_KIND(cgroup_of(root_, 43), Errc::NotFound);
}

TEST_F(CgroupTest, ALeaseEndsWhenTheGroupIsEmptyOrGone) {
  populate("1");
  put_process("0::/system.slice/job.scope\n");
  Lease lease;
  lease.cgroup = *cgroup_of(root_, 42);
  EXPECT_TRUE(is_live(lease, kLeaseTime));
  populate("0");
  EXPECT_FALSE(is_live(lease, kLeaseTime));
  populate("1");
  EXPECT_TRUE(is_live(lease, kLeaseTime));
  Lease timed = lease;
  timed.expires = kLeaseTime;
  EXPECT_FALSE(is_live(timed, kLeaseTime)) << "whichever ends first";
  std::filesystem::remove_all(group_);
  EXPECT_FALSE(is_live(lease, kLeaseTime));
}

TEST_F(CgroupTest, ALaterGroupOfTheSameNameHoldsNoEarlierLease) {
  populate("1");
  put_process("0::/system.slice/job.scope\n");
  Lease lease;
  lease.cgroup = *cgroup_of(root_, 42);
  std::filesystem::rename(group_, folder_ / "before");  // so that the new one can't get its inode number
  populate("1");
  EXPECT_FALSE(is_live(lease, kLeaseTime));
}

}  // namespace
}  // namespace spark::staging
