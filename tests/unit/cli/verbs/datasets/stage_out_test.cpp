#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class StageOut : public ::testing::Test {
 protected:
  StageOut() {
    program.client.answer("POST /v1/stage-outs", 202,
                          R"({"id": "7", "verb": "stage-out", "subject": "checkpoints:run7/step-1"})");
  }
  void ends_with(const std::string& event) { program.client.stream_once("/v1/jobs/7/events", {{event}}); }
  // What this host's own job has does not count.
  void SetUp() override {
    for (const char* name :
         {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
      ::unsetenv(name);
  }
  std::string attempt_of(std::vector<std::string> more) {
    std::vector<std::string> words = {"stage-out", "/out/step-1", "checkpoints:x", "--detach"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(program.run(words), 0) << program.errors();
    const std::string sent = program.client.sent.back(), key = R"("attempt":")";
    const std::size_t at = sent.find(key);
    return at == std::string::npos
               ? "none"
               : sent.substr(at + key.size(), sent.find('"', at + key.size()) - at - key.size());
  }
  Program program;
};

TEST_F(StageOut, TheAttemptOfTheJobIsThatOfSlurmOrTorchrunOrAsGiven) {
  const std::vector<std::string> on_two = {"--nodes", "2"};
  EXPECT_EQ(attempt_of(on_two), "none");
  ::setenv("TORCHELASTIC_RUN_ID", "none", 1);
  ::setenv("TORCHELASTIC_RESTART_COUNT", "0", 1);
  EXPECT_EQ(attempt_of(on_two), "none") << "torchrun's default is that of each job";
  ::setenv("TORCHELASTIC_RUN_ID", "run7", 1);
  ::setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
  EXPECT_EQ(attempt_of(on_two), "run7.2");
  ::setenv("SLURM_JOB_ID", "77", 1);
  EXPECT_EQ(attempt_of(on_two), "77.0") << "it was not restarted yet";
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  EXPECT_EQ(attempt_of(on_two), "77.1");
  EXPECT_EQ(attempt_of({"--nodes", "2", "--attempt", "third"}), "third");
  EXPECT_EQ(attempt_of({}), "none") << "one host";
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:x", "--attempt", "third"}), 2);
  SetUp();
}

TEST_F(StageOut, SendsTheAbsolutePathAndPrintsTheDestination) {
  ends_with(R"({"event": "done", "result": {"name": "checkpoints:run7/step-1", "state": "ready",
    "path": "/mnt/ckpt/run7/step-1", "served_from": "copied", "bytes": 5, "files": 1, "seconds": 1,
    "bytes_per_second": 5, "removed": ["step-0"], "warnings": [], "skipped": []}})");
  EXPECT_EQ(program.run({"stage-out", "/out/./step-1", "checkpoints:run7/step-1", "--keep", "3", "--max-rate",
                         "1MB/s"}),
            0);
  EXPECT_EQ(
      program.client.sent.at(0),
      R"(POST /v1/stage-outs {"source":"/out/step-1","destination":"checkpoints:run7/step-1","keep":3,"max_rate":1000000})");
  EXPECT_EQ(program.output(), "/mnt/ckpt/run7/step-1\n");
  EXPECT_NE(program.errors().find("step-0 was deleted there"), std::string::npos) << program.errors();
}

TEST_F(StageOut, ReportsAnExistingCompleteCopy) {
  ends_with(R"({"event": "done", "result": {"name": "checkpoints:run7/step-1", "served_from": "unchanged",
    "path": "/mnt/ckpt/run7/step-1"}})");
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:run7/step-1"}), 0);
  EXPECT_NE(program.errors().find("was there already, complete"), std::string::npos) << program.errors();
}

TEST_F(StageOut, EndsWithTheStatusOfItsError) {
  ends_with(R"({"event": "failed", "error": {"kind": "mismatch", "what": "it changed while it was read"}})");
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:run7/step-1"}), 6);
}

TEST_F(StageOut, DetachPrintsTheJob) {
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:run7/step-1", "--detach"}), 0);
  EXPECT_EQ(program.output(), "7\n");
}

TEST_F(StageOut, ReplacesACopyOfAnotherSourceOnlyIfAsked) {
  EXPECT_EQ(program.run({"stage-out", "/out/v2", "checkpoints:x", "--accept-source", "--detach"}), 0);
  EXPECT_EQ(program.client.sent.at(0),
            R"(POST /v1/stage-outs {"source":"/out/v2","destination":"checkpoints:x","accept_source":true})");
  EXPECT_EQ(program.run({"stage-out", "run7", "--accept-source"}), 2) << "an output's own steps are replaced";
}

TEST_F(StageOut, RefusesToKeepNone) {
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:x", "--keep", "0"}), 2);
}

// As when the daemon is restarted: it does not know the job that the first answer has.
class StageOutAfterARestart : public ::testing::Test {
 protected:
  void restart_during(const std::string& target, const std::string& accepted, const std::string& end) {
    program.client.answer("POST " + target, 202,
                          R"({"id": "7", "key": "7-a", "verb": "stage-out", "subject": "x")" +
                              (accepted.empty() ? "}" : R"(, "accepted": )" + accepted + "}"));
    program.client.answer("POST " + target, 202,
                          R"({"id": "1", "key": "1-b", "verb": "stage-out", "subject": "x"})");
    program.client.stream_once("/v1/jobs/1-b/events", {{end}});
  }
  // The body of each request to that target.
  std::vector<std::string> bodies(const std::string& target) const {
    std::vector<std::string> bodies;
    for (const std::string& sent : program.client.sent) {
      if (sent.starts_with("POST " + target)) bodies.push_back(sent.substr(("POST " + target).size()));
    }
    return bodies;
  }
  Program program;
  const std::string done_ =
      R"({"event": "done", "result": {"name": "x", "path": "/mnt/x", "served_from": "copied"}})";
};

// What the source has become since is half of the next save.
TEST_F(StageOutAfterARestart, AsksForTheStateThatWasAccepted) {
  restart_during("/v1/stage-outs", R"({"written": "-21"})",
                 R"({"event": "failed", "error": {"kind": "mismatch", "what": "it changed"}})");
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:x", "--keep", "1"}), 6);
  EXPECT_EQ(bodies("/v1/stage-outs"),
            (std::vector<std::string>{
                R"( {"source":"/out/step-1","destination":"checkpoints:x","keep":1})",
                R"( {"source":"/out/step-1","destination":"checkpoints:x","keep":1,"written":"-21"})"}));
}

TEST_F(StageOutAfterARestart, OfAnOutputAsksForTheCheckpointThatWasAccepted) {
  restart_during("/v1/outputs/run7/send", R"({"checkpoint": "step-3", "written": "31"})", done_);
  EXPECT_EQ(program.run({"stage-out", "run7"}), 0) << program.errors();
  EXPECT_EQ(bodies("/v1/outputs/run7/send"),
            (std::vector<std::string>{"", R"( {"checkpoint":"step-3","written":"31"})"}));
}

TEST_F(StageOutAfterARestart, RepeatsItsRequestToADaemonThatTellsNoState) {
  restart_during("/v1/stage-outs", "", done_);
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:x"}), 0) << program.errors();
  EXPECT_EQ(bodies("/v1/stage-outs"),
            std::vector<std::string>(2, R"( {"source":"/out/step-1","destination":"checkpoints:x"})"));
}

// Something else is being sent to that name: no restart is to blame.
TEST_F(StageOutAfterARestart, EndsWithTheReasonForWhichItIsNotAccepted) {
  program.client.answer("POST /v1/stage-outs", 202, R"({"id": "7", "key": "7-a", "verb": "stage-out"})");
  program.client.answer("POST /v1/stage-outs", 503,
                        R"({"error": {"kind": "unavailable", "what": "job 2 sends /out/other there"}})");
  EXPECT_EQ(program.run({"stage-out", "/out/step-1", "checkpoints:x"}), 4);
  EXPECT_NE(program.errors().find("job 2 sends /out/other there"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace spark::cli
