// A scheduler's job: its id, its display name, and whether it runs on this host.
#include "staging/leases/scheduler_job.hpp"

#include <gmock/gmock.h>

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;

class SchedulerJobTest : public testing::Test {
 protected:
  TempFolder folder_;
  const SystemRoot root_{folder_.path()};

  void run(const std::string& pid, const std::string& program, const std::string& command_line) {
    write_text(folder_ / "proc" / pid / "comm", program + "\n");
    write_text(folder_ / "proc" / pid / "cmdline", command_line);
  }
  std::set<std::string> jobs() {
    const auto found = slurm_jobs_here(root_);
    EXPECT_TRUE(found) << found.error().message();
    return found.value_or(std::set<std::string>{});
  }
};

TEST_F(SchedulerJobTest, RunsWhereOneOfItsStepsHasASlurmstepd) {
  run("10", "slurmstepd", "slurmstepd: [123.0]");
  run("11", "slurmstepd", "slurmstepd: [123.batch]");
  run("12", "slurmstepd", std::string("slurmstepd: [124.extern]\0", 25));
  EXPECT_THAT(jobs(), ElementsAre("123", "124"));
}

TEST_F(SchedulerJobTest, EachPartOfAHeterogeneousJobIsAJob) {
  run("10", "slurmstepd", "slurmstepd: [200+1.0]");
  run("11", "slurmstepd", "slurmstepd: [201.0+1]");
  EXPECT_THAT(jobs(), ElementsAre("200", "201"));
}

TEST_F(SchedulerJobTest, IsNotAProgramThatOnlyResemblesASlurmstepd) {
  run("10", "python3", "slurmstepd: [123.0]");
  run("11", "slurmstepd", "/usr/sbin/slurmstepd infinity");
  run("12", "slurmstepd", "slurmstepd: [x]");
  run("13", "slurmstepd", "slurmstepd: [123");
  run("14", "slurmstepd", "");
  run("self", "slurmstepd", "slurmstepd: [9.0]");
  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(SchedulerJobTest, IsUnknownWhileProcessesCanNotBeListed) {
  EXPECT_FALSE(slurm_jobs_here(root_)) << "no answer is not the same as \"absent\"";
}

TEST_F(SchedulerJobTest, HasAnIdOfLettersDigitsAndFewSigns) {
  for (const char* id : {"123", "123_4", "124+1", "abc.DEF", "0"}) EXPECT_TRUE(check_job_id("slurm", id));
  EXPECT_TRUE(check_job_id("slurm", std::string(64, '7')));
  for (const std::string& id : {std::string(), std::string(65, '7'), std::string("1:2"), std::string("1/2"),
                                std::string("1 2"), std::string("1\n"), std::string("é"), std::string("a-b")})
    EXPECT_KIND(check_job_id("slurm", id), Errc::Invalid);
}

TEST_F(SchedulerJobTest, AVolumesJobHasTheIdFromKubelet) {
  EXPECT_TRUE(check_job_id("csi", "csi-" + std::string(64, 'a')));
  EXPECT_TRUE(check_job_id("csi", std::string(128, '7')));
  for (const std::string& id :
       {std::string(), std::string(129, '7'), std::string("1:2"), std::string("../x")})
    EXPECT_KIND(check_job_id("csi", id), Errc::Invalid);
}

TEST_F(SchedulerJobTest, IsNamedWithItsUserIfKnown) {
  EXPECT_EQ(in_words({"slurm", "123", "alice", {}, ""}), "slurm job 123 (alice)");
  EXPECT_EQ(in_words({"slurm", "123", "", {}, ""}), "slurm job 123");
  EXPECT_EQ(in_words({"slurm", "123", "a\x1b[1m", {}, ""}), "slurm job 123 (a\\x1b[1m)");
  EXPECT_EQ(in_words({"csi", "csi-1f", "team-a/train-0", {}, ""}), "pod team-a/train-0");
  EXPECT_EQ(in_words({"csi", "csi-1f", "", {}, ""}), "volume csi-1f");
}

}  // namespace
}  // namespace spark::staging
