// Shell scripts, first in PATH, replace ssh and the remote program.
#include "bench/hosts/host_run.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "bench/hosts/together.hpp"
#include "bench/report/report.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::HasSubstr;

const StopFlag kNeverStop = false;

class Hosts : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    ::setenv("PATH", (disk.path() + ":" + path_).c_str(), 1);
    record.host.name = "spark2";
    std::ofstream(disk / "record.json") << json::serialize(to_json(record));
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  // "$host" is the requested host.
  void ssh_does(const std::string& script) {
    const std::string file = disk / "ssh";
    std::ofstream(file) << "#!/bin/sh\nfor word; do host=$last; last=$word; done\n" << script << "\n";
    ::chmod(file.c_str(), 0755);
  }
  std::string send_record() const { return "printf 'record '; cat " + (disk / "record.json") + "; echo"; }
  Result<> start(const std::vector<std::string>& hosts) {
    return together.start(Launcher::Ssh, hosts, {"spark-stage", "bench", "in-step", "nfs=/mnt/b"});
  }
  Result<> step(unsigned cell) {
    return together.step(cell, Duration(20'000), kNeverStop, [](const std::string&) {});
  }

  const DiskFolder disk;
  Record record = sample_record();
  Together together;

 private:
  std::string path_;
};

TEST_F(Hosts, MeasureEachCellAfterAllHaveReachedIt) {
  ssh_does("for cell in 1 2; do echo ready $cell; read word; echo $host $cell $word >>" + (disk / "log") +
           "; done; " + send_record());
  ASSERT_TRUE(start({"spark2", "spark3"}));
  ASSERT_TRUE(step(1));
  ASSERT_TRUE(step(2));
  const auto records = together.records(Duration(20'000), kNeverStop);
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ(records->front().host.name, "spark2");
  EXPECT_EQ(records->front().cells.size(), record.cells.size());
  std::string log = read_text(disk / "log");
  EXPECT_THAT(log, HasSubstr("spark2 1 go"));
  EXPECT_THAT(log, HasSubstr("spark3 2 go"));
}

TEST_F(Hosts, AnUnreachableHostIsNamedWithACommandToTry) {
  ssh_does("echo \"$host: Permission denied (publickey).\" >&2; exit 255");
  ASSERT_TRUE(start({"spark2"}));
  const auto stepped = step(1);
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().kind, Errc::Unavailable);
  EXPECT_THAT(stepped.error().message(),
              HasSubstr("ssh does not reach spark2: spark2: Permission denied (publickey)."));
  EXPECT_THAT(stepped.error().hint, HasSubstr("ssh -o BatchMode=yes spark2 true"));
}

TEST_F(Hosts, AHostWithoutTheProgramIsNamed) {
  ssh_does("echo 'sh: spark-stage: not found' >&2; exit 127");
  ASSERT_TRUE(start({"spark2"}));
  EXPECT_THAT(step(1).error().message(), HasSubstr("there is no spark-stage on spark2"));
}

TEST_F(Hosts, ARefusalIsReportedWithTheHostsOwnMessage) {
  ssh_does("echo 'spark-stage: /mnt/b is no folder' >&2; exit 3");
  ASSERT_TRUE(start({"spark2"}));
  const auto stepped = step(1);
  EXPECT_THAT(stepped.error().message(),
              HasSubstr("the benchmark on spark2 ended with status 3: /mnt/b is no folder"));
  EXPECT_THAT(stepped.error().hint, HasSubstr("leave out --with spark2"));
}

TEST_F(Hosts, AHostOutOfStepIsRefused) {
  ssh_does("echo ready 7; read word");
  ASSERT_TRUE(start({"spark2"}));
  EXPECT_THAT(step(1).error().message(), HasSubstr("not in step: it says 'ready 7' before measurement 1"));
}

TEST_F(Hosts, ASilentHostTimesOut) {
  ssh_does("read word");
  ASSERT_TRUE(start({"spark2"}));
  const auto stepped = together.step(1, Duration(1), kNeverStop, [](const std::string&) {});
  EXPECT_EQ(stepped.error().kind, Errc::TimedOut);
}

TEST_F(Hosts, CleanUpWhenTheRunIsCancelled) {
  ssh_does("echo ready 1; read word || touch " + (disk / "tidied"));
  {
    Together abandoned;
    ASSERT_TRUE(abandoned.start(Launcher::Ssh, {"spark2"}, {"spark-stage"}));
    const StopFlag stop = true;
    EXPECT_EQ(abandoned.step(2, Duration(20'000), stop, [](const std::string&) {}).error().kind,
              Errc::Cancelled);
  }
  EXPECT_TRUE(fs::exists(disk / "tidied"));
}

TEST(HostWord, GoStartsTheMeasurementAndAClosedPipeEndsTheRun) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::ostringstream out;
  ASSERT_EQ(::write(ends[1], "go\n", 3), 3);
  EXPECT_TRUE(wait_for_word(ends[0], out, 4, kNeverStop));
  EXPECT_EQ(out.str(), "ready 4\n");
  ::close(ends[1]);
  EXPECT_FALSE(wait_for_word(ends[0], out, 5, kNeverStop));
  ::close(ends[0]);
}

}  // namespace
}  // namespace spark::bench
