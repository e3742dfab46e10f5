#include "daemon/workers/process_runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/steady_timer.hpp>

#include <fstream>
#include <iterator>

#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"
#include "tests/support/unkillable.hpp"

namespace spark::workers {
namespace {

using testing::HasSubstr;

class RunnerTest : public testing::Test {
 protected:
  Call call(const std::string& verb) {
    Call made;
    made.verb = verb;
    made.subject = "volume x";
    made.request = {{"path", "/mnt"}};
    return made;
  }
  Call brief(const std::string& verb) {
    Call made = call(verb);
    made.sharing = Sharing::Worker;
    return made;
  }
  // All workers for short requests since the start.
  std::vector<pid_t> servers() {
    std::ifstream file(worker.folder() / "serve.pids");
    return {std::istream_iterator<pid_t>(file), {}};
  }
  // Sends the request in the background.
  void ask(const std::string& subject, const std::string& verb, std::optional<Result<json::object>>& answer,
           Duration patience) {
    auto question = [this, &answer, patience](std::string of,
                                              std::string what) -> boost::asio::awaitable<void> {
      json::object request;
      answer = co_await runner.ask(std::move(of), std::move(what), std::move(request), patience);
    };
    asked = question;  // the coroutine uses its captures
    boost::asio::co_spawn(context, asked(subject, verb), boost::asio::detached);
  }
  Result<json::object> ask(const std::string& subject, const std::string& verb) {
    std::optional<Result<json::object>> answer;
    ask(subject, verb, answer, Duration(60'000));
    EXPECT_TRUE(run_until(context, [&] { return answer.has_value(); }));
    return answer ? *answer : Result<json::object>(fail(Errc::Failed, "the runner hung"));
  }
  Result<json::object> run(Call what, Cancellation cancellation = {}) {
    auto result = await(context, runner.run(std::move(what), cancellation));
    return result ? std::move(*result) : Result<json::object>(fail(Errc::Failed, "the runner hung"));
  }

  std::function<boost::asio::awaitable<void>(std::string, std::string)> asked;
  ScriptedWorker worker;
  boost::asio::io_context context;
  ProcessRunner runner{context.get_executor(), worker.program()};
};

TEST_F(RunnerTest, PassesTheRequestToTheWorkerAndReturnsItsAnswer) {
  worker.on("echo", R"sh(printf '{"result": %s}\n' "$(cat)")sh");
  const auto answer = run(call("echo"));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(get_string(*answer, "path"), "/mnt");
}

TEST_F(RunnerTest, AShortRequestReusesAnIdleWorker) {
  worker.on("probe", R"sh(printf '{"result": %s}\n' "$(cat)")sh");
  worker.on("look", R"(echo '{"progress": {"n": 1}}'; echo '{"error": {"kind": "refused", "what": "no"}}')");
  for (int i = 0; i < 3; ++i) {
    const auto answer = run(brief("probe"));
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(get_string(*answer, "path"), "/mnt");
    EXPECT_EQ(run(brief("look")).error().kind, Errc::Refused);
  }
  EXPECT_EQ(servers().size(), 1u);
  EXPECT_EQ(runner.counts().started, 1u);
  EXPECT_EQ(runner.counts().running, 0u);
}

TEST_F(RunnerTest, TwoConcurrentShortRequestsUseTwoWorkers) {
  worker.on("probe", R"(sleep 0.3; echo '{"result": {}}')");
  int answered = 0;
  const auto ask = [&]() -> boost::asio::awaitable<void> {
    auto question = brief("probe");
    const auto answer = co_await runner.run(std::move(question));
    answered += answer ? 1 : 0;
  };
  boost::asio::co_spawn(context, ask, boost::asio::detached);
  boost::asio::co_spawn(context, ask, boost::asio::detached);
  ASSERT_TRUE(run_until(context, [&] { return answered == 2; }));
  EXPECT_EQ(servers().size(), 2u);
}

TEST_F(RunnerTest, AHundredConcurrentRequestsAreAnsweredByAFewWorkers) {
  worker.on("probe", R"(sleep 0.02; echo '{"result": {}}')");
  int answered = 0;
  const auto ask = [&]() -> boost::asio::awaitable<void> {
    json::object request;
    const auto answer = co_await runner.ask("volume x", "probe", std::move(request), std::chrono::hours(1));
    answered += answer ? 1 : 0;
  };
  for (int i = 0; i < 100; ++i) boost::asio::co_spawn(context, ask, boost::asio::detached);
  ASSERT_TRUE(run_until(
      context, [&] { return answered == 100; }, std::chrono::seconds(120)));
  // On a busy machine a request that takes more than a second no longer counts against the limit.
  EXPECT_LT(servers().size(), 50u);
}

TEST_F(RunnerTest, AnIdleWorkerThatWasKilledIsReplacedTransparently) {
  worker.on("probe", R"(echo '{"result": {}}')");
  ASSERT_TRUE(run(brief("probe")));
  ::kill(servers().at(0), SIGKILL);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(servers().at(0)), nullptr, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(run(brief("probe")));
  EXPECT_EQ(servers().size(), 2u);
}

TEST_F(RunnerTest, AWorkerKilledDuringARequestIsAnErrorAndTheRequestIsNotRepeated) {
  worker.on("probe", R"(echo '{"result": {}}')");
  worker.on("publish", "echo begun >> begun; kill -9 $(head -n 1 serve.pids)");
  ASSERT_TRUE(run(brief("probe")));
  const auto answer = run(brief("publish"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("ended without an answer"));
  std::ifstream begun(worker.folder() / "begun");
  EXPECT_EQ(std::distance(std::istream_iterator<std::string>(begun), {}), 1);
}

TEST_F(RunnerTest, AWorkerThatMissedItsDeadlineIsNotReused) {
  worker.on("probe", "if [ $n = 1 ]; then sleep 600; else echo '{\"result\": {}}'; fi");
  auto slow = brief("probe");
  slow.deadline = Duration(200);
  EXPECT_EQ(run(std::move(slow)).error().kind, Errc::TimedOut);
  EXPECT_TRUE(run(brief("probe")));
  EXPECT_EQ(servers().size(), 2u);
}

TEST_F(RunnerTest, ForwardsProgressInOrder) {
  worker.on("work", R"(echo '{"progress": {"n": 1}}'; echo '{"progress": {"n": 2}}'; echo '{"result": {}}')");
  std::vector<std::int64_t> seen;
  auto with_progress = call("work");
  with_progress.on_progress = [&](const json::object& progress) { seen.push_back(*get_int(progress, "n")); };
  EXPECT_TRUE(run(std::move(with_progress)));
  EXPECT_THAT(seen, testing::ElementsAre(1, 2));
}

TEST_F(RunnerTest, KeepsTheKindOfAWorkersError) {
  worker.on("fail", R"(echo '{"error": {"kind": "refused", "what": "no", "hint": "ask"}}')");
  const auto answer = run(call("fail"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::Refused);
}

TEST_F(RunnerTest, AWorkerThatDiesWithoutAnAnswerIsAnError) {
  worker.on("die", "kill -9 $$");
  const auto answer = run(call("die"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("ended without an answer"));
}

TEST_F(RunnerTest, AWorkerThatWasKilledPointsToTheMemory) {
  worker.on("die", "kill -9 $$");
  const auto killed = run(call("die"));
  ASSERT_FALSE(killed);
  EXPECT_THAT(killed.error().what, HasSubstr("ended without an answer, by the signal SIGKILL"));
  EXPECT_THAT(killed.error().hint, HasSubstr("memory may have run out"));
  worker.on("end", "exit 1");
  const auto ended = run(call("end"));
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().what, testing::EndsWith("ended without an answer"));
}

TEST_F(RunnerTest, AWorkerWithAnAnswerThatIsTooLongIsEnded) {
  worker.on("tell", "head -c 80000000 /dev/zero | tr '\\0' x");
  const auto answer = run(call("tell"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("too long"));
  EXPECT_EQ(runner.counts().running, 0u);
}

TEST_F(RunnerTest, AWorkerThatDiesOfSigbusPointsToItsDrive) {
  worker.on("die", "kill -BUS $$");
  const auto answer = run(call("die"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("may be full"));
}

TEST_F(RunnerTest, AWorkerAndItsChildrenAreKilledAfterTheDeadline) {
  worker.on("hang", "echo $$ > pid; sleep 600 & echo $! > child; wait");
  auto hanging = call("hang");
  hanging.deadline = Duration(300);
  const auto answer = run(std::move(hanging));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::TimedOut);
  EXPECT_THAT(answer.error().what, HasSubstr("within 300 ms"));
  int child = 0;
  std::ifstream(worker.folder() / "child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(run_until(context, [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    std::getline(stat, line);
    return line.empty() || line.find(" Z ") != std::string::npos;
  }));
  EXPECT_TRUE(runner.abandoned().empty());
}

// Otherwise another one would start every 50 s, blocked on the kernel's lock for connects, while the first
// one hangs.
TEST_F(RunnerTest, NoConnectIsStartedForATargetWhileOneIsStuckInTheKernel) {
  worker.on("connect", "if [ $n = 1 ]; then sleep 600; else echo '{\"result\": {}}'; fi");
  worker.on("discover", R"(echo '{"result": {}}')");
  worker.on("probe", R"(echo '{"result": {}}')");
  std::optional<Result<json::object>> first;
  ask("target a", "connect", first, Duration(300));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("connect") == 1; }));
  {
    const Unkillable stuck(servers().at(0));
    if (!stuck.works()) GTEST_SKIP() << "no process may be traced here";
    ASSERT_TRUE(run_until(context, [&] { return first.has_value(); }));
    EXPECT_EQ(first->error().kind, Errc::TimedOut);
    EXPECT_EQ(runner.abandoned().count("target a"), 1u);

    for (const char* verb : {"connect", "discover", "watch-discovery"}) {
      const auto refused = ask("target a", verb);
      ASSERT_FALSE(refused) << verb;
      EXPECT_EQ(refused.error().kind, Errc::Unavailable);
      EXPECT_THAT(refused.error().message(), HasSubstr("stuck in the kernel"));
    }
    EXPECT_EQ(runner.counts().started, 1u);
    EXPECT_EQ(runner.counts().abandoned, 1u);
    EXPECT_TRUE(ask("target b", "connect")) << "another target is none of its business";
    EXPECT_TRUE(ask("target a", "probe")) << "only connects wait behind each other";
  }
  EXPECT_TRUE(run_until(context, [&] { return runner.abandoned().empty(); }));
  EXPECT_TRUE(ask("target a", "connect"));
}

TEST_F(RunnerTest, AWorkerThatEndsWhenAskedIsAskedAndThenKilled) {
  worker.on("serve-all",
            "trap 'echo asked > asked' TERM; echo '{\"progress\": {}}'; while :; do sleep 0.01; done");
  Cancellation cancellation;
  Call made = call("serve-all");
  made.ends_when_asked = true;
  made.on_progress = [&](const json::object&) { cancellation.cancel(); };
  EXPECT_EQ(run(std::move(made), cancellation).error().kind, Errc::Cancelled);
  EXPECT_TRUE(std::filesystem::exists(worker.folder() / "asked"));
}

TEST_F(RunnerTest, TheAnswerOfAWorkerThatIsStuckAtItsEndIsNotLost) {
  // Without a child: its end is a signal, at which a traced process stops.
  worker.on("serve-all",
            "echo '{\"progress\": {}}'; while [ ! -e go ]; do :; done; echo '{\"result\": {}}'; exec >&-");
  std::optional<Unkillable> stuck;
  Call made = call("serve-all");
  made.ends_when_asked = true;
  pid_t pid = 0;
  made.on_start = [&](pid_t started) { pid = started; };
  made.on_progress = [&](const json::object&) {
    stuck.emplace(pid);
    std::ofstream(worker.folder() / "go");
  };
  const auto answer = run(std::move(made));
  if (!stuck || !stuck->works()) GTEST_SKIP() << "no process may be traced here";
  EXPECT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(runner.counts().abandoned, 1u);
  stuck.reset();
  EXPECT_TRUE(run_until(context, [&] { return runner.abandoned().empty(); }));
}

TEST_F(RunnerTest, CancellingEndsTheWorker) {
  worker.on("hang", "sleep 600");
  Cancellation cancellation;
  boost::asio::steady_timer timer(context, std::chrono::milliseconds(100));
  timer.async_wait([&](auto) { cancellation.cancel(); });
  const auto answer = run(call("hang"), cancellation);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::Cancelled);
}

TEST_F(RunnerTest, CountsWorkersByOutcome) {
  worker.on("echo", R"(echo '{"result": {}}')");
  worker.on("hang", "sleep 600");
  std::size_t running_meanwhile = 0;
  auto counted = call("echo");
  counted.on_start = [&](pid_t) { running_meanwhile = runner.counts().running; };
  EXPECT_TRUE(run(std::move(counted)));
  auto hanging = call("hang");
  hanging.deadline = Duration(100);
  EXPECT_FALSE(run(std::move(hanging)));
  EXPECT_EQ(running_meanwhile, 1U);
  EXPECT_EQ(runner.counts().running, 0U);
  EXPECT_EQ(runner.counts().started, 2U);
  EXPECT_EQ(runner.counts().timed_out, 1U);
  EXPECT_EQ(runner.counts().abandoned, 0U);
}

TEST_F(RunnerTest, AnswersThatAreNotJsonAreAnError) {
  worker.on("garbage", "echo 'not json'");
  EXPECT_FALSE(run(call("garbage")));
}

TEST_F(RunnerTest, AMissingProgramIsAnError) {
  ProcessRunner missing(context.get_executor(), "/nonexistent/worker");
  const auto answer = await(context, missing.run(call("echo")));
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_THAT(answer->error().what, HasSubstr("/nonexistent/worker"));
}

}  // namespace
}  // namespace spark::workers
