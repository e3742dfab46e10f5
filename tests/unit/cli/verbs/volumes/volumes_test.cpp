#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Volumes : public ::testing::Test {
 protected:
  void job(const std::string& volume, const std::string& verb, const std::string& id,
           const std::string& event) {
    program.client.answer("POST /v1/volumes/" + volume + "/" + verb, 202, R"({"id": ")" + id + "\"}");
    program.client.stream_once("/v1/jobs/" + id + "/events", {{event}});
  }

  Program program;
};

TEST_F(Volumes, AreBroughtUpByName) {
  job("datasets", "up", "1", R"({"event": "done", "result": {"volume": "datasets", "state": "ready"}})");
  EXPECT_EQ(program.run({"volumes", "up", "datasets"}), 0);
  EXPECT_EQ(program.output(), "datasets: ready\n");
}

TEST_F(Volumes, AVolumeNotYetReadyNamesTheWaitCommand) {
  job("datasets", "up", "1", R"({"event": "done", "result": {"volume": "datasets", "state": "waiting"}})");
  EXPECT_EQ(program.run({"volumes", "up", "datasets"}), 0);
  EXPECT_EQ(program.output(), "datasets: waiting - `spark-stage wait datasets` ends when it is ready\n");
}

TEST_F(Volumes, AVolumeThatHasNotLeftDownYetIsReportedAsComingUp) {
  job("datasets", "up", "1", R"({"event": "done", "result": {"volume": "datasets", "state": "down"}})");
  EXPECT_EQ(program.run({"volumes", "up", "datasets"}), 0);
  EXPECT_EQ(program.output(), "datasets: coming up - `spark-stage wait datasets` ends when it is ready\n");
}

TEST_F(Volumes, AreAllTakenDownWhenNoneIsNamed) {
  program.client.answer("GET /v1/status", 200, R"({"volumes": [{"name": "a"}, {"name": "b"}]})");
  job("a", "down", "1", R"json({"event": "failed", "error": {"kind": "refused",
    "what": "a is in use by pid 9 (python)", "hint": "stop it"}})json");
  job("b", "down", "2", R"({"event": "done", "result": {"volume": "b", "state": "down"}})");
  program.context.person = "alice";
  EXPECT_EQ(program.run({"volumes", "down"}), 7);
  EXPECT_EQ(program.output(), "b: down\n");
  EXPECT_EQ(program.errors(), "spark-stage: a is in use by pid 9 (python) - stop it\n");
  EXPECT_EQ(program.client.sent[1], R"(POST /v1/volumes/a/down {"by":"alice"})");
  EXPECT_EQ(program.client.sent[2], R"(POST /v1/volumes/b/down {"by":"alice"})");
}

TEST_F(Volumes, AreTakenDownByForceOnlyByName) {
  EXPECT_EQ(program.run({"volumes", "down", "--force"}), 2);
  EXPECT_TRUE(program.client.sent.empty());
}

TEST_F(Volumes, AreTakenDownByForce) {
  job("nas", "down", "1", R"({"event": "done", "result": {"volume": "nas", "state": "down"}})");
  program.context.person = "alice";
  EXPECT_EQ(program.run({"volumes", "down", "nas", "--force"}), 0);
  EXPECT_EQ(program.output(), "nas: down\n");
  EXPECT_EQ(program.client.sent[0], R"(POST /v1/volumes/nas/down {"by":"alice","force":true})");
}

TEST_F(Volumes, PublishNamesTheCommandToWriteAgain) {
  job("models", "publish", "1", R"({"event": "done", "result": {"volume": "models", "state": "ready",
    "published": {"generation": 8, "host": "spark1", "at": "2026-11-22T05:00:00Z"}}})");
  EXPECT_EQ(program.run({"volumes", "publish", "models"}), 0);
  EXPECT_EQ(program.output(),
            "models: published as generation 8; read-only until `spark-stage volumes up models`\n");
}

TEST_F(Volumes, ThenWriteMakesAPublishedVolumeWritableAgain) {
  job("models", "publish", "1", R"({"event": "done", "result": {"volume": "models", "state": "ready",
    "published": {"generation": 8, "host": "spark1", "at": "2026-11-22T05:00:00Z"}}})");
  EXPECT_EQ(program.run({"volumes", "publish", "models", "--then-write"}), 0);
  EXPECT_EQ(program.output(), "models: published as generation 8; writable again\n");
}

constexpr char kHeld[] = R"json({"volumes": [{"name": "models", "state": "refused",
  "reason": "the host with host ID 1234 holds the reservation of namespace 1 of models",
  "fence": {"reservation": false, "mmp": true, "held_by": "the host with host ID 1234"}}]})json";

TEST_F(Volumes, TakeRequiresTypingTheVolumesName) {
  program.client.answer("GET /v1/volumes/models", 200, kHeld);
  program.in.str("modles\n");
  EXPECT_EQ(program.run({"volumes", "take", "models"}), 1);
  EXPECT_EQ(program.client.sent.size(), 1u) << "nothing but the question for the status";
  EXPECT_NE(program.errors().find("Taking it over from the host with host ID 1234"), std::string::npos)
      << program.errors();
}

TEST_F(Volumes, TakeNamesThePreviousHolder) {
  program.client.answer("GET /v1/volumes/models", 200, kHeld);
  job("models", "take", "1",
      R"({"event": "done", "result": {"volume": "models", "state": "mounting", "taken_from": "host 'a'"}})");
  program.in.str("models\n");
  EXPECT_EQ(program.run({"volumes", "take", "models"}), 0);
  EXPECT_EQ(program.output(), "models: mounted here, taken over from host 'a'\n");
}

TEST_F(Volumes, YesTakesOverWithoutAsking) {
  program.client.answer("GET /v1/volumes/models", 200, kHeld);
  job("models", "take", "1",
      R"({"event": "done", "result": {"volume": "models", "state": "mounting", "taken_from": null}})");
  EXPECT_EQ(program.run({"volumes", "take", "models", "--yes"}), 0);
  EXPECT_EQ(program.output(), "models: mounted here; it was not held\n");
}

constexpr char kReady[] =
    R"({"volumes": [{"name": "models", "state": "ready", "access": "exclusive", "fence": {}}]})";

TEST_F(Volumes, AVolumeReadyOnThisHostIsNotTakenWhichTheDaemonConfirmsWithoutAQuestion) {
  program.client.answer("GET /v1/volumes/models", 200, kReady);
  job("models", "take", "1",
      R"({"event": "done", "result": {"volume": "models", "state": "ready", "taken_from": null}})");
  EXPECT_EQ(program.run({"volumes", "take", "models"}), 0);
  EXPECT_EQ(program.output(), "models: ready here already\n");
  EXPECT_EQ(program.errors().find("Taking it over"), std::string::npos) << program.errors();
  EXPECT_THAT(program.client.sent, testing::Contains(R"(POST /v1/volumes/models/take {"if_here":true})"));
}

TEST_F(Volumes, AVolumeThatWasReadyAndIsBeingLostIsNoSuccessOfTake) {
  program.client.answer("GET /v1/volumes/models", 200, kReady);
  job("models", "take", "1", R"({"event": "failed", "error": {"kind": "unavailable",
    "what": "volume models is being lost: the host with host ID 1234 has taken over", "hint": ""}})");
  EXPECT_NE(program.run({"volumes", "take", "models", "--yes"}), 0);
  EXPECT_EQ(program.output(), "");
  EXPECT_NE(program.errors().find("is being lost"), std::string::npos) << program.errors();
}

TEST_F(Volumes, AVolumePublishedOnThisHostIsNotTakenButTheNextStepIsNamed) {
  program.client.answer("GET /v1/volumes/models", 200,
                        R"({"volumes": [{"name": "models", "state": "ready", "access": "exclusive",
                            "reason": "published as generation 3: read-only", "fence": {}}]})");
  EXPECT_EQ(program.run({"volumes", "take", "models", "--yes"}), 7);
  EXPECT_EQ(program.output(), "");
  EXPECT_NE(program.errors().find("`sudo spark-stage volumes down models` first"), std::string::npos)
      << program.errors();
}

TEST_F(Volumes, AVolumeWithoutAFenceIsNotTakenWhateverItsState) {
  for (const char* state : {"ready", "down"}) {
    Program asked;
    asked.client.answer("GET /v1/volumes/models", 200,
                        std::string(R"({"volumes": [{"name": "models", "access": "read-only", "fence": null,
                                        "state": ")") +
                            state + "\"}]}");
    EXPECT_EQ(asked.run({"volumes", "take", "models"}), 7);
    EXPECT_EQ(asked.output(), "");
    EXPECT_EQ(asked.errors(),
              "spark-stage: volume models can't be taken over: it is not exclusive, or has no fence - "
              "taking over is for `access: exclusive` with another `fence` than none\n");
  }
}

TEST_F(Volumes, AnUnconfiguredVolumeCannotBeTaken) {
  program.client.answer("GET /v1/volumes/modles", 404, R"({"error": {"kind": "not_found", "what": "none"}})");
  EXPECT_EQ(program.run({"volumes", "take", "modles"}), 3);
}

TEST_F(Volumes, ConfirmReplacesTypingTheName) {
  program.client.answer("GET /v1/volumes/models", 200, kHeld);
  EXPECT_EQ(program.run({"volumes", "take", "models", "--confirm", "modles"}), 2);
  EXPECT_EQ(program.client.sent.size(), 1u) << "nothing but the question for the status";
  job("models", "take", "1",
      R"({"event": "done", "result": {"volume": "models", "taken_from": "host 'a'"}})");
  EXPECT_EQ(program.run({"volumes", "take", "models", "--confirm", "models", "--json"}), 0);
  EXPECT_EQ(get_string(*parse_json_object(program.output()), "taken_from"), "host 'a'");
}

TEST_F(Volumes, WithoutASubcommandAreListed) {
  program.client.answer("GET /v1/status", 200, kHeld);
  EXPECT_EQ(program.run({"volumes"}), 0);
  EXPECT_NE(program.output().find("models  refused"), std::string::npos) << program.output();
  Program json;
  json.client.answer("GET /v1/status", 200, kHeld);
  EXPECT_EQ(json.run({"volumes", "--json"}), 0);
  EXPECT_EQ(get_array(*parse_json_object(json.output()), "volumes")->size(), 1u);
}

TEST_F(Volumes, UpReportsTheStateAsJson) {
  job("models", "up", "1", R"({"event": "done", "result": {"volume": "models", "state": "ready"}})");
  EXPECT_EQ(program.run({"volumes", "up", "models", "--json"}), 0);
  const auto answer = parse_json_object(program.output());
  ASSERT_TRUE(answer) << program.output();
  EXPECT_EQ(get_string(get_array(*answer, "volumes")->front().get_object(), "state"), "ready");
}

TEST_F(Volumes, AnUnknownSubcommandIsAUsageError) {
  EXPECT_EQ(program.run({"volumes", "ls"}), 2);
  EXPECT_EQ(program.errors().find("did you mean"), std::string::npos) << program.errors();
  EXPECT_EQ(program.run({"volumes", "upp"}), 2);
  EXPECT_NE(program.errors().find("did you mean 'up'?"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace spark::cli
