#include "tests/unit/daemon/outputs/stage_outs_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::HasSubstr;

TEST_F(StageOutsTest, AnIdenticalRequestJoinsTheJobAndAnotherSourceForThePathIsRefused) {
  worker.on("stage-out", kHangs);
  const auto first = send();
  EXPECT_EQ(send(), first);
  const auto other = await(context, outs->send(request("run/step-1", "/out/other")));
  ASSERT_TRUE(other && !*other);
  EXPECT_EQ(other->error().kind, Errc::Unavailable);
  EXPECT_THAT(other->error().message(), HasSubstr("wait --job"));
  ASSERT_TRUE(first->cancel());
  EXPECT_TRUE(ends(first));
}

// A job that was killed and resumed has saved it again.
TEST_F(StageOutsTest, ALaterStateOfTheSourceTakesThePlaceOfAnEarlierOne) {
  worker.on("stage-out", kHangs);
  const auto first = send();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  worker.on("flush-source", R"(echo '{"result": {"written": 8}}')");
  worker.on("stage-out", note_request("stage-outs.log") + kSent);
  const auto second = send();
  EXPECT_NE(second, first);
  ASSERT_TRUE(ends(first));
  EXPECT_THAT(error_of(first), HasSubstr(R"("kind":"mismatch")"));
  ASSERT_TRUE(ends(second));
  EXPECT_THAT(text_of("stage-outs.log"), HasSubstr(R"("written":8)"));
}

TEST_F(StageOutsTest, AnotherAttemptOfTheJobTakesThePlaceOfAnEarlierOne) {
  worker.on("stage-out", kHangs);
  const auto first = send();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  StageOutRequest next = request();
  next.attempt = "7.1";
  worker.on("stage-out", kSent);
  EXPECT_TRUE(ends(send(next)));
  ASSERT_TRUE(ends(first));
  EXPECT_THAT(error_of(first), HasSubstr("another attempt of the job sends it"));
}

// As from a shell, to look at one that waits.
TEST_F(StageOutsTest, ARequestWithoutAnAttemptJoinsTheJobThatSendsTheSameState) {
  worker.on("stage-out", kHangs);
  StageOutRequest of_job = request();
  of_job.attempt = "7.1";
  const auto first = send(of_job);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  EXPECT_EQ(send(), first);
  EXPECT_TRUE(first->is_running());
}

class JoiningTest : public StageOutsTest {
 protected:
  using Answer = std::optional<Result<std::shared_ptr<Job>>>;
  // Filled when the request is answered.
  std::shared_ptr<Answer> ask() {
    auto answer = std::make_shared<Answer>();
    asio::co_spawn(context, outs->send(request()),
                   [answer](const std::exception_ptr&, auto sent) { *answer = std::move(sent); });
    context.restart();
    context.poll();
    return answer;
  }
  // Two requests for one copy, the second while the first is recorded by `record`.
  void ask_twice(const std::string& record) {
    worker.on("record", "until [ -e go -o ! -e worker ]; do sleep 0.02; done; " + record);
    first = ask();
    ASSERT_TRUE(run_until(context, [&] { return worker.calls("record") == 1; }));
    second = ask();
    EXPECT_FALSE(first->has_value());
    EXPECT_FALSE(second->has_value());
    std::ofstream(worker.folder() / "go") << "now";
    ASSERT_TRUE(run_until(context, [&] { return first->has_value() && second->has_value(); }));
  }

  std::shared_ptr<Answer> first, second;
};

// A power cut right after the answer would lose the copy.
TEST_F(JoiningTest, ARequestThatJoinsOneIsAnsweredWhenThatIsRecorded) {
  worker.on("stage-out", kHangs);
  ask_twice(R"(echo '{"result": {}}')");
  ASSERT_TRUE(**first && **second);
  EXPECT_EQ(***first, ***second);
  EXPECT_EQ(worker.calls("record"), 1);
  ASSERT_TRUE((***first)->cancel());
  EXPECT_TRUE(ends(***first));
}

TEST_F(JoiningTest, ARequestThatJoinsOneThatCannotBeRecordedIsRefusedAsWell) {
  ask_twice(kFull);
  ASSERT_FALSE(**first || **second);
  EXPECT_EQ((*second)->error().kind, Errc::NoSpace);
  EXPECT_EQ((*second)->error().message(), (*first)->error().message());
}

class JoinedShardTest : public StageOutsTest {
 protected:
  JoinedShardTest() {
    worker.on("stage-out", "while [ ! -e go ]; do sleep 0.02; done; [ -e joined ] || { " + waiting_ +
                               "; exit; }; " + std::string(kSent));
    watched_.nodes = asked_.nodes = 2;
    watched_.waits = false;
  }
  void make(const std::string& file) { std::ofstream(worker.folder() / file); }

  const std::string waiting_ =
      R"(echo '{"result": {"state": "waiting", "served_from": "copied", "hosts": ["spark1"]}}')";
  StageOutRequest watched_ = request(), asked_ = request();
};

TEST_F(JoinedShardTest, ARequestThatJoinsAWatchedOutputsTransferWaitsForAllShards) {
  const auto job = send(watched_);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") == 1; }));
  EXPECT_EQ(send(asked_), job);
  make("go");
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage-out") >= 2; }));
  make("joined");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(json::serialize(job->to_json()["result"].at("state")), R"("ready")");
}

TEST_F(JoinedShardTest, AFinishedTransferIsNotJoined) {
  // The test may end, and delete the folder, before the script looks again.
  worker.on("forget", R"(until [ -e forgotten -o ! -e worker ]; do sleep 0.02; done; echo '{"result": {}}')");
  make("go");
  const auto job = send(watched_);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("forget") == 1; }));
  make("joined");
  const auto asked = send(asked_);
  EXPECT_NE(asked, job);
  make("forgotten");
  ASSERT_TRUE(ends(asked));
  EXPECT_EQ(json::serialize(asked->to_json()["result"].at("state")), R"("ready")");
}

}  // namespace
}  // namespace spark::outputs
