#include "bench/fio/process.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

FioRun shell(const std::string& script, Duration deadline) {
  FioRun run;
  run.command = {"sh", "-c", script};
  run.deadline = deadline;
  return run;
}

TEST(RunFio, StatusObjectsArriveWhileItRunsAndTheLastIsKept) {
  // The script prints its second object only after the first has arrived.
  const DiskFolder folder;
  const std::string seen = folder / "seen";
  int arrived = 0;
  FioRun run = shell("echo '{\"n\":1}'; echo oops >&2; until [ -e " + seen +
                         " ]; do sleep 0.05; done; echo '{\"n\":2}'; exit 3",
                     Duration(60'000));
  run.on_status = [&](const json::object&) {
    ++arrived;
    std::ofstream{seen};
  };
  const auto end = run_fio(run);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 3);
  EXPECT_EQ(get_int(*end->last, "n"), 2);
  EXPECT_NE(end->words.find("oops"), std::string::npos);
  EXPECT_EQ(arrived, 2);
}

TEST(RunFio, FioIsKilledWithItsChildrenAtItsDeadline) {
  const auto end = run_fio(shell("echo '{\"n\":1}'; sleep 60; echo late", Duration(500)));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->timed_out);
  EXPECT_FALSE(end->abandoned);
}

TEST(RunFio, TheStopFlagEndsIt) {
  StopFlag stop = false;
  FioRun run = shell("sleep 60", Duration(60'000));
  run.stop = &stop;
  std::thread user([&] {
    std::this_thread::sleep_for(Duration(300));
    stop = true;
  });
  const auto end = run_fio(run);
  user.join();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
}

TEST(RunFio, AProcessThatClosesItsOutputButKeepsRunningIsKilled) {
  const auto end = run_fio(shell("exec >&- 2>&-; sleep 60", Duration(600'000)));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->timed_out) << "its end was waited for";
}

TEST(RunFio, AMissingProgramIsReportedWithAnInstallHint) {
  FioRun run;
  run.command = {"/nonexistent/fio"};
  const auto end = run_fio(run);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, Errc::NotFound);
  EXPECT_NE(end.error().hint.find("install"), std::string::npos);
}

}  // namespace
}  // namespace spark::bench
