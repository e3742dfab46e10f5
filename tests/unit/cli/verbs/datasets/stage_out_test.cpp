#include <gtest/gtest.h>

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
  Program program;
};

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

}  // namespace
}  // namespace spark::cli
