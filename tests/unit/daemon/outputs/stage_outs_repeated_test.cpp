// Requests that clients repeat since the daemon was restarted, and those that an earlier version has
// recorded.
#include "daemon/log.hpp"
#include "tests/unit/daemon/outputs/stage_outs_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr, testing::Not;

constexpr char kStateOfNow8[] = R"(echo '{"result": {"written": 8}}')";

class RepeatedStageOut : public StageOutsTest {
 protected:
  // What an earlier daemon accepted when the source was in this state.
  static StageOutRequest repeated(std::int64_t written) {
    StageOutRequest wanted = request();
    wanted.written = written;
    wanted.is_repeated = true;
    return wanted;
  }
  Result<std::shared_ptr<Job>> answer_to(StageOutRequest wanted) {
    auto job = await(context, outs->send(std::move(wanted)));
    if (job) return std::move(*job);
    return fail(Errc::TimedOut, "no answer");
  }
  void recorded(const json::object& content) {
    const json::object row{{"file", "/state/stage-outs/one.json"}, {"content", content}};
    const json::object answer{{"result", json::object{{"records", json::array{row}}}}};
    worker.on("recorded", "echo '" + json::serialize(answer) + "'");
  }
  void start() { asio::co_spawn(context, outs->start(), asio::detached); }
  static json::object record(std::optional<std::int64_t> written) {
    StageOutRequest earlier = request();
    earlier.id = "one";
    earlier.written = written;
    json::object content = to_json(earlier);
    if (!written) content["written"] = 0;
    if (!written) content.erase("attempt");  // of an earlier version
    return content;
  }
};

// The source has become half of the next save: the copy says so, and nothing of it is accepted.
TEST_F(RepeatedStageOut, IsSentInTheStateThatWasAcceptedAlone) {
  worker.on("flush-source", kStateOfNow8);
  const auto job = answer_to(repeated(7));
  ASSERT_TRUE(job) << job.error().message();
  ASSERT_TRUE(ends(*job));
  EXPECT_THAT(text_of("records.log"), HasSubstr(R"("written":7)"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":7)"));
  EXPECT_THAT(text_of("stage-outs.log"), Not(HasSubstr(R"("written":8)")));
}

TEST_F(RepeatedStageOut, JoinsTheJobThatTheRestartedDaemonResumes) {
  worker.on("stage-out", kHangs);
  recorded(record(7));
  start();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  worker.on("flush-source", kStateOfNow8);
  const auto job = answer_to(repeated(7));
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(*job, outs->transfers().front()->job());
  EXPECT_EQ(worker.calls("flush-source"), 0);
  EXPECT_EQ(json::serialize((*job)->to_json().at("accepted")), R"({"written":"7"})");
  EXPECT_FALSE((*job)->to_json(Job::Told::Outcome).contains("accepted"));
}

TEST_F(RepeatedStageOut, EndsNoLaterOne) {
  worker.on("stage-out", kHangs);
  worker.on("flush-source", kStateOfNow8);
  const auto later = send();
  const auto outdated = answer_to(repeated(7));
  ASSERT_FALSE(outdated);
  EXPECT_EQ(outdated.error().kind, Errc::Mismatch);
  EXPECT_THAT(outdated.error().message(), HasSubstr("changed since that was accepted"));
  EXPECT_TRUE(later->is_running());
  EXPECT_EQ(*answer_to(repeated(8)), later);
}

// The daemon was killed after it had recorded the later one, and before it forgot the earlier one.
TEST_F(RepeatedStageOut, FindsItsOwnOfTwoThatWereRecorded) {
  worker.on("stage-out", kHangs);
  json::object first = record(7), second = record(8);
  second["id"] = "two";
  const json::array rows{json::object{{"file", "/state/stage-outs/one.json"}, {"content", first}},
                         json::object{{"file", "/state/stage-outs/two.json"}, {"content", second}}};
  worker.on("recorded",
            "echo '" + json::serialize(json::object{{"result", json::object{{"records", rows}}}}) + "'");
  start();
  ASSERT_TRUE(run_until(context, [&] { return outs->transfers().size() == 2; }));
  EXPECT_EQ(*answer_to(repeated(8)), outs->transfers().back()->job());
}

class RequestOfAnEarlierVersion : public RepeatedStageOut {
 protected:
  RequestOfAnEarlierVersion() {
    log::redirect([this](std::string_view sentence) { log_.append(sentence).append("\n"); });
  }
  ~RequestOfAnEarlierVersion() override { log::redirect({}); }
  json::object record_of_output() {
    StageOutRequest earlier = request_of_output("rename");
    earlier.id = "one";
    json::object content = to_json(earlier);
    content["written"] = 0;
    content.erase("attempt");
    return content;
  }
  std::string log_;
};

// A busy drive: the record is forgotten once the request has ended.
TEST_F(RequestOfAnEarlierVersion, IsSentAlsoIfItsSourceCannotBeFlushedAtOnce) {
  worker.on("flush-source", "if [ $n = 1 ]; then " + std::string(kTrouble) +
                                R"(; else echo '{"result": {"written": 7}}'; fi)");
  recorded(record({}));
  start();
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent == 1; }));
  EXPECT_THAT(log_, HasSubstr("recorded no state of the source"));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":7)"));
}

TEST_F(RequestOfAnEarlierVersion, FailsIfItsSourceCanNeverBeFlushed) {
  worker.on("flush-source", kTrouble);
  recorded(record({}));
  start();
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().failed == 1; }));
  EXPECT_EQ(worker.calls("flush-source"), 3);
  EXPECT_TRUE(outs->transfers().empty());
}

// The job may have saved half of the next one since; the output looks whether it is complete.
TEST_F(RequestOfAnEarlierVersion, OfAnOutputWithARuleIsLeftToIt) {
  worker.on("flush-source", kStateOfNow8);
  recorded(record_of_output());
  settings.outputs["run7"].complete = config::Complete::Rename;
  start();
  ASSERT_TRUE(run_until(context, [&] { return outs->sources().has_value(); }));
  EXPECT_TRUE(outs->transfers().empty());
  EXPECT_EQ(worker.calls("forget"), 1);
  EXPECT_EQ(worker.calls("stage-out"), 0);
}

TEST_F(RequestOfAnEarlierVersion, OfAnOutputWithoutARuleIsSent) {
  worker.on("flush-source", kStateOfNow8);
  recorded(record_of_output());
  start();
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent == 1; }));
}

// As by a command line that was upgraded with the daemon.
TEST_F(RequestOfAnEarlierVersion, IsJoinedOnceItsStateIsKnown) {
  worker.on("stage-out", kHangs);
  worker.on("flush-source",
            "until [ -e go -o ! -e worker ]; do sleep 0.02; done; "
            R"(echo '{"result": {"written": 7}}')");
  recorded(record({}));
  start();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("flush-source") == 1; }));
  std::optional<Result<std::shared_ptr<Job>>> answer;
  asio::co_spawn(context, outs->send(request()),
                 [&](const std::exception_ptr&, auto sent) { answer = std::move(sent); });
  context.restart();
  context.poll();
  EXPECT_FALSE(answer);
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(run_until(context, [&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(**answer, outs->transfers().front()->job());
  EXPECT_EQ(outs->transfers().size(), 1U);
}

// Another one of the same state as before costs a look at the source, and no flush.
TEST_F(RepeatedStageOut, ThatAUserTypesTellsTheWorkerWhatIsOnTheDrive) {
  worker.on("flush-source",
            note_request("flushes.log") + R"(echo '{"result": {"written": 7, "identity": 99}}')");
  ASSERT_TRUE(ends(send()));
  EXPECT_THAT(text_of("flushes.log"), Not(HasSubstr("on_drive")));
  ASSERT_TRUE(ends(send()));
  EXPECT_THAT(text_of("flushes.log"), HasSubstr(R"("on_drive":99)"));
  StageOutRequest of_another = request();
  of_another.asker.uid = 1001;
  worker.on("flush-source", note_request("others.log") + R"(echo '{"result": {"written": 7}}')");
  ASSERT_TRUE(ends(send(of_another)));
  EXPECT_THAT(text_of("others.log"), Not(HasSubstr("on_drive")))
      << "a user's worker is not believed by others";
}

}  // namespace
}  // namespace spark::outputs
