// stage and run: jobs, their progress, and an unavailable daemon
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

constexpr char kStagings[] = "POST /v1/stagings";
constexpr char kEvents[] = "/v1/jobs/7-1f/events";
constexpr char kDone[] = R"({"event": "done", "result": {"datasets": [{"name": "imagenet", "state": "ready",
  "path": "/cache/imagenet/3", "served_from": "copied", "bytes": 10000000000, "files": 1281167, "seconds": 8.0,
  "bytes_per_second": 1250000000, "hash": "xxh3:1", "memfree_drop_bytes": 1, "lease": "3ee4d2ad", "env": "DATA_ROOT"}]}})";
constexpr char kJob[] =
    R"({"id": "7", "key": "7-1f", "verb": "stage", "subject": ["imagenet"], "state": "running",
  "started": "2026-11-20T15:21:26Z"})";

std::string progress(const char* phase, long long done, long long total) {
  return json::serialize(json::object{{"event", "progress"},
                                      {"dataset", "imagenet"},
                                      {"phase", phase},
                                      {"bytes_done", done},
                                      {"bytes_total", total},
                                      {"files_done", 5},
                                      {"files_total", 1281167},
                                      {"bytes_per_second", 0},
                                      {"seconds", 1}});
}

class Stage : public ::testing::Test {
 protected:
  void SetUp() override { program.client.answer(kStagings, 202, kJob); }

  FakeClient::Stream whole_run() const {
    FakeClient::Stream stream;
    stream.lines = {progress("queued", 0, 0), progress("walking", 3'000'000'000, 3'000'000'000)};
    for (long long step = 0; step < 9; ++step) {
      stream.lines.push_back(progress("copying", step * 1'250'000'000, 10'000'000'000));
    }
    stream.lines.insert(stream.lines.end(), {progress("flushing", 10'000'000'000, 10'000'000'000), kDone});
    stream.between = Duration(1000);
    return stream;
  }

  Program program;
};

TEST_F(Stage, PrintsThePathAloneOnStdout) {
  program.client.stream_once(kEvents, whole_run());
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_EQ(program.output(), "/cache/imagenet/3\n");
  expect_golden("stage-plain.txt", program.errors());
}

TEST_F(Stage, DrawsABarOnATerminal) {
  program.context.terminal = {true, true, 80, true};
  program.client.stream_once(kEvents, whole_run());
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  expect_golden_screen("stage-terminal.txt", program.errors(), program.context.terminal.columns);
}

TEST_F(Stage, JsonIsTheDocumentedObject) {
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet", "--json"}), 0);
  EXPECT_EQ(parse_json(program.output()).value(), parse_json(kDone).value().at("result"));
}

TEST_F(Stage, AsksForALeaseByTime) {
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet", "--lease", "2h"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/stagings {"datasets":["imagenet"],"lease_s":7200})");
  EXPECT_NE(program.errors().find("spark-stage release 3ee4d2ad"), std::string::npos) << program.errors();
}

TEST_F(Stage, AsksForALeaseByProcessOrGroup) {
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet", "--hold", "4242"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/stagings {"datasets":["imagenet"],"hold":4242})");
  program.client.stream_once(kEvents, {{kDone}});
  program.client.sent.clear();
  EXPECT_EQ(program.run({"stage", "imagenet", "--hold", "cgroup"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/stagings {"datasets":["imagenet"],"hold":"cgroup"})");
  for (const char* nobody : {"1", "0", "-5", "me", "12x"}) {
    EXPECT_EQ(program.run({"stage", "imagenet", std::string("--hold=") + nobody}), 2) << nobody;
  }
}

TEST_F(Stage, AsksForARate) {
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet", "--max-rate", "1.5GB/s"}), 0);
  EXPECT_EQ(program.client.sent.front(),
            R"(POST /v1/stagings {"datasets":["imagenet"],"max_rate":1500000000})");
  EXPECT_EQ(program.run({"stage", "imagenet", "--max-rate", "fast"}), 2);
}

TEST_F(Stage, NamesTheEvictedDatasets) {
  program.client.stream_once(kEvents, {{R"({"event": "done", "result": {"datasets": [{"name": "imagenet",
    "path": "/c/1", "served_from": "copied", "bytes": 5, "files": 1, "seconds": 1,
    "evicted": [{"name": "old", "bytes": 1200000000000}]}]}})"}});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_NE(program.errors().find("  old was evicted for it, 1.20 TB\n"), std::string::npos)
      << program.errors();
}

TEST_F(Stage, ShowsTheDaemonsTimeLeftBottleneckAndReasonOfAStall) {
  FakeClient::Stream stream;
  for (const char* line :
       {R"({"event": "progress", "dataset": "imagenet", "phase": "copying", "bytes_done": 5000000000,
            "bytes_total": 10000000000, "bytes_per_second": 900000000, "eta_s": 7.0, "bottleneck": "source"})",
        R"({"event": "progress", "dataset": "imagenet", "phase": "stalled", "bytes_done": 5000000000,
            "bytes_total": 10000000000, "bytes_per_second": 0, "eta_s": null,
            "reason": "volume datasets is stalled; it resumes automatically"})",
        kDone}) {
    stream.lines.emplace_back(line);
  }
  stream.between = Duration(1000);
  program.client.stream_once(kEvents, stream);
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_NE(program.errors().find("900 MB/s, 7 s left, limited by: source\n"), std::string::npos)
      << program.errors();
  EXPECT_NE(program.errors().find(
                "imagenet: stalled at 5.00 of 10.0 GB (50 %), volume datasets is stalled; it resumes"),
            std::string::npos)
      << program.errors();
}

TEST_F(Stage, AnInvalidLeaseTimeIsAUsageError) {
  EXPECT_EQ(program.run({"stage", "imagenet", "--lease", "soon"}), 2);
  EXPECT_NE(program.errors().find("--lease: 'soon' is not a duration - write a number"), std::string::npos)
      << program.errors();
  EXPECT_TRUE(program.client.sent.empty());
  EXPECT_EQ(program.run({"stage", "imagenet", "--detach", "--lease", ""}), 0)
      << "an empty variable of a script";
}

TEST_F(Stage, ALeaseHasToLastForSomeTimeAndHasToEnd) {
  EXPECT_EQ(program.run({"stage", "imagenet", "--lease", "10000d"}), 2);
  EXPECT_NE(program.errors().find("--lease: '10000d' is more than ten years"), std::string::npos)
      << program.errors();
  EXPECT_EQ(program.run({"stage", "imagenet", "--lease", "0s"}), 2);
  EXPECT_TRUE(program.client.sent.empty());
}

TEST_F(Stage, DetachedPrintsTheJobAndReturns) {
  EXPECT_EQ(program.run({"stage", "imagenet", "--detach"}), 0);
  EXPECT_EQ(program.output(), "7\n");
  EXPECT_EQ(program.client.sent.size(), 1u);
}

TEST_F(Stage, FailsWithTheErrorsExitStatus) {
  program.client.stream_once(kEvents,
                             {{progress("walking", 0, 0), R"({"event": "failed", "error": {"kind": "no_space",
    "what": "imagenet needs 142 GB, 41 GB are free", "hint": "evict something"}})"}});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 5);
  EXPECT_EQ(program.output(), "");
  EXPECT_NE(program.errors().find("spark-stage: imagenet needs 142 GB, 41 GB are free - evict something\n"),
            std::string::npos);
}

TEST_F(Stage, AnInterruptCancelsTheJob) {
  FakeClient::Stream stream{{progress("copying", 1, 10)}, {Errc::Cancelled, "interrupted", ""}};
  stream.afterwards = [&] { program.stop = true; };
  program.client.stream_once(kEvents, stream);
  program.client.answer("DELETE /v1/jobs/7-1f", 200, "{}");
  EXPECT_EQ(program.run({"stage", "imagenet"}), 130);
  EXPECT_EQ(program.client.sent.back(), "DELETE /v1/jobs/7-1f");
  EXPECT_EQ(program.output(), "");
}

TEST_F(Stage, ContinuesAfterARestartOfTheDaemon) {
  program.client.stream_once(kEvents, {{progress("copying", 1, 10)}});
  program.client.fail_once("GET /v1/jobs/7-1f", {Errc::Unavailable, "no daemon listens", ""});
  program.client.answer("GET /v1/jobs/7-1f", 404, R"({"error": {"kind": "not_found", "what": "no job 7"}})");
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_EQ(program.output(), "/cache/imagenet/3\n");
  EXPECT_NE(program.errors().find("lost the connection"), std::string::npos);
  EXPECT_NE(program.errors().find("connected again"), std::string::npos);
}

TEST_F(Stage, FollowsTheSameJobAgainAfterALostConnection) {
  program.client.stream_once(kEvents, {{progress("copying", 1, 10)}});
  for (int i = 0; i < 10; ++i)
    program.client.fail_once("GET /v1/jobs/7-1f", {Errc::TimedOut, "no answer within 5 s", ""});
  program.client.answer("GET /v1/jobs/7-1f", 200, kJob);
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_EQ(std::count_if(program.client.sent.begin(), program.client.sent.end(),
                          [](const auto& sent) { return sent.starts_with(kStagings); }),
            1);
}

TEST_F(Stage, KeepsReadingEventsWhileTheSameJobIsRunning) {
  program.client.stream_once(kEvents, {{progress("copying", 1, 10)}, {Errc::TimedOut, "silent", ""}});
  program.client.answer("GET /v1/jobs/7-1f", 200, kJob);
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 0);
  EXPECT_EQ(program.errors().find("lost the connection"), std::string::npos) << program.errors();
}

TEST_F(Stage, FailsIfTheDaemonStaysUnavailable) {
  program.client.stream_once(kEvents, {{progress("copying", 1, 10)}});
  program.client.fail_once("GET /v1/jobs/7-1f", {Errc::Unavailable, "no daemon listens", "start it"});
  EXPECT_EQ(program.run({"stage", "imagenet"}), 4);
  EXPECT_NE(program.errors().find("no daemon listens - start it"), std::string::npos) << program.errors();
}

TEST_F(Stage, WithoutADaemonFailsAtOnce) {
  Program lonely;
  lonely.client.fail_once(kStagings, {Errc::Unavailable, "no daemon listens", "start it"});
  EXPECT_EQ(lonely.run({"stage", "imagenet"}), 4);
  EXPECT_EQ(lonely.client.sent.size(), 1u);
}

TEST_F(Stage, AResultWithoutAPathForEachDatasetIsAnError) {
  program.client.stream_once(kEvents, {{kDone}});
  EXPECT_EQ(program.run({"stage", "imagenet", "models"}), 1);
  EXPECT_EQ(program.output(), "");
  EXPECT_NE(program.errors().find("no path for 'models'"), std::string::npos);
}

TEST_F(Stage, GarbageInTheEventsIsAnError) {
  program.client.stream_once(kEvents, {{"{nonsense"}});
  EXPECT_NE(program.run({"stage", "imagenet"}), 0);
}

class Run : public Stage {
 protected:
  void SetUp() override {
    Stage::SetUp();
    program.client.stream_once(kEvents, {{kDone}});
    program.client.answer("DELETE /v1/leases/3ee4d2ad", 200, "{}");
    file = std::filesystem::temp_directory_path() / ("spark-run-" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(file); }

  std::filesystem::path file;
};

TEST_F(Run, SetsThePathVariablesOfTheCommand) {
  EXPECT_EQ(program.run({"run", "imagenet", "--", "sh", "-c",
                         "echo $SPARK_STAGE_IMAGENET $DATA_ROOT > " + file.string() + "; exit 3"}),
            3);
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  EXPECT_EQ(line, "/cache/imagenet/3 /cache/imagenet/3");
  EXPECT_EQ(program.client.sent[0], R"(POST /v1/stagings {"datasets":["imagenet"],"hold":true})");
}

TEST_F(Run, ADatasetCalledSocketDoesNotTakeTheDaemonsVariable) {
  Program other;
  other.client.answer(kStagings, 202, kJob);
  other.client.stream_once(kEvents, {{R"({"event": "done", "result": {"datasets": [
      {"name": "socket", "path": "/cache/socket/1", "env": ""}]}})"}});
  EXPECT_EQ(other.run({"run", "socket", "--", "sh", "-c", "[ \"$SPARK_STAGE_SOCKET\" != /cache/socket/1 ]"}),
            0);
  EXPECT_NE(other.errors().find("SPARK_STAGE_SOCKET is the daemon's"), std::string::npos) << other.errors();
}

constexpr char kModels[] = R"({"event": "done", "result": {"datasets": [
  {"name": "a", "path": "/cache/a/1/models--org--a/snapshots/c", "hub_cache": "/cache/a/1", "hub_folder": "models--org--a"},
  {"name": "b", "path": "/cache/b/2/models--org--b/snapshots/c", "hub_cache": "/cache/b/2", "hub_folder": "models--org--b"}]}})";

TEST_F(Run, GivesModelsAPrivateCacheOfLinksAndRemovesIt) {
  Program models;
  models.client.answer(kStagings, 202, kJob);
  models.client.stream_once(kEvents, {{kModels}});
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(models.run({"run", "a", "b", "--", "sh", "-c",
                        "mkdir $HF_HUB_CACHE/.locks; echo \"$HF_HUB_CACHE $HF_HUB_OFFLINE $HF_HOME\" "
                        "$(readlink $HF_HUB_CACHE/models--org--a $HF_HUB_CACHE/models--org--b) > " +
                            file.string()}),
            0);
  std::ifstream told(file);
  std::string folder, rest;
  told >> folder >> std::ws;
  std::getline(told, rest);
  EXPECT_EQ(rest, "1  /cache/a/1/models--org--a /cache/b/2/models--org--b");
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

TEST_F(Run, TheCacheOfLinksHasAWholePathAlsoInARelativeTemporaryFolder) {
  Program models;
  models.client.answer(kStagings, 202, kJob);
  models.client.stream_once(kEvents, {{kModels}});
  ::unsetenv("HF_HUB_CACHE");
  ::setenv("TMPDIR", ".", 1);
  EXPECT_EQ(models.run({"run", "a", "b", "--", "sh", "-c", "cd / && test -L $HF_HUB_CACHE/models--org--a"}),
            0);
  ::unsetenv("TMPDIR");
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(Run, LeavesTheCacheThatTheJobHasChosen) {
  Program models;
  models.client.answer(kStagings, 202, kJob);
  models.client.stream_once(kEvents, {{kModels}});
  ::setenv("HF_HUB_CACHE", "/chosen", 1);
  ::unsetenv("HF_HUB_OFFLINE");  // of an earlier test: `run` sets it in this process
  EXPECT_EQ(models.run({"run", "a", "b", "--", "sh", "-c", "test $HF_HUB_CACHE$HF_HUB_OFFLINE = /chosen"}),
            0);
  ::unsetenv("HF_HUB_CACHE");
}

std::string two_revisions() {
  std::string two(kModels);
  return two.replace(two.rfind("models--org--b"), 14, "models--org--a");
}

TEST_F(Run, RunsTwoRevisionsOfAModelWithoutALinkToEither) {
  Program models;
  models.client.answer(kStagings, 202, kJob);
  models.client.stream_once(kEvents, {{two_revisions()}});
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HUB_OFFLINE");
  EXPECT_EQ(models.run({"run", "a", "b", "--", "sh", "-c",
                        "test \"$HF_HUB_CACHE$HF_HUB_OFFLINE $SPARK_STAGE_A $SPARK_STAGE_B\" = "
                        "' /cache/a/1/models--org--a/snapshots/c /cache/b/2/models--org--b/snapshots/c'"}),
            0);
  EXPECT_THAT(models.errors(), testing::HasSubstr("2 of these datasets are the model models--org--a"));
}

TEST_F(Run, RunsTwoRevisionsOfAModelWithTheCacheThatTheJobHasChosen) {
  Program models;
  models.client.answer(kStagings, 202, kJob);
  models.client.stream_once(kEvents, {{two_revisions()}});
  ::setenv("HF_HUB_CACHE", "/chosen", 1);
  EXPECT_EQ(models.run({"run", "a", "b", "--", "true"}), 0);
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(Run, RequestsADoubtfulCopyWithAllowDirty) {
  EXPECT_EQ(program.run({"run", "imagenet", "--allow-dirty", "--", "true"}), 0);
  EXPECT_EQ(program.client.sent[0],
            R"(POST /v1/stagings {"datasets":["imagenet"],"hold":true,"allow_dirty":true})");
}

TEST_F(Run, DoesNotInterpretTheCommandsArguments) {
  EXPECT_EQ(program.run({"run", "imagenet", "--", "sh", "-c",
                         "test \"$1\" = '[a,b]' && test \"$2\" = -- && test $# = 3", "sh", "[a,b]", "--",
                         "--json"}),
            0);
}

TEST_F(Run, AMissingCommandIsNamedAndExitsWith127) {
  EXPECT_EQ(program.run({"run", "imagenet", "--", "/no/such/command"}), 127);
  EXPECT_NE(program.errors().find("/no/such/command"), std::string::npos);
}

TEST_F(Run, WithoutACommandIsAUsageError) {
  EXPECT_EQ(program.run({"run", "imagenet"}), 2);
  EXPECT_TRUE(program.client.sent.empty());
}

TEST_F(Run, StartsNothingWhenStagingFailed) {
  Program failing;
  failing.client.answer(
      kStagings, 404,
      R"({"error": {"kind": "not_found", "what": "there is no dataset 'imagnet'", "hint": ""}})");
  EXPECT_EQ(failing.run({"run", "imagnet", "--", "touch", file.string()}), 3);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Run, NamesOutputsWithAnUnsentCheckpointAfterTheCommandEnds) {
  program.client.answer("GET /v1/outputs", 200, R"({"outputs": [{"name": "run7"}, {"name": "run8"}]})");
  program.client.answer(
      "GET /v1/outputs/run7", 200,
      R"({"name": "run7", "unsent": "step-9 is not on checkpoints:run7 yet; spark-staged sends it"})");
  program.client.answer("GET /v1/outputs/run8", 200, R"({"name": "run8", "unsent": null})");
  EXPECT_EQ(program.run({"run", "imagenet", "--", "false"}), 1) << "the command's own status";
  EXPECT_NE(
      program.errors().find("output run7: step-9 is not on checkpoints:run7 yet; spark-staged sends it"),
      std::string::npos)
      << program.errors();
  EXPECT_EQ(program.errors().find("run8"), std::string::npos);
}

}  // namespace
}  // namespace spark::cli
