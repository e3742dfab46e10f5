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

TEST(RunApart, ResultsAndErrorsAreReturned) {
  const ApartOptions options{"asking", Duration(10'000), nullptr};
  const auto answer = run_apart(options, []() -> Result<json::value> {
    return json::object{{"pid", ::getpid()}, {"text", std::string(200'000, 'x')}};
  });
  ASSERT_TRUE(answer);
  EXPECT_NE(get_int(answer->as_object(), "pid"), ::getpid());
  EXPECT_EQ(get_string(answer->as_object(), "text")->size(), 200'000u);
  const auto error =
      run_apart(options, []() -> Result<json::value> { return fail(Errc::NoSpace, "full", "make room"); });
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().kind, Errc::NoSpace);
  EXPECT_EQ(error.error().message(), "full - make room");
}

TEST(RunApart, AHangingCallTimesOutAndACrashIsReported) {
  const auto late = run_apart({"asking", Duration(300), nullptr}, []() -> Result<json::value> {
    ::sleep(60);
    return json::value();
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Errc::TimedOut);
  const auto dead =
      run_apart({"asking", Duration(5000), nullptr}, []() -> Result<json::value> { ::_exit(9); });
  ASSERT_FALSE(dead);
  EXPECT_NE(dead.error().what.find("died"), std::string::npos);
}

TEST(RunApart, TheStopFlagEndsTheWait) {
  const StopFlag stop = true;
  const auto stopped = run_apart({"asking", Duration(60'000), &stop}, []() -> Result<json::value> {
    ::sleep(60);
    return json::value();
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Errc::Cancelled);
}

}  // namespace
}  // namespace spark::bench
