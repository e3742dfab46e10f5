#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

constexpr char kBusy[] = R"json({"version": "0.1.0", "uptime_s": 4000, "volumes": [
  {"name": "datasets", "kind": "nvme-tcp", "state": "ready", "reason": "", "since": "2026-11-17T10:00:00Z",
   "mount": "/mnt/rosa-storage", "access": "read-only", "device": "nvme1n1"},
  {"name": "models", "kind": "nvme-tcp", "state": "waiting", "reason":
   "connecting raid5-models to 192.168.0.100:4420: connection refused - is the target listening? The next attempt is in 8 s",
   "since": "2026-11-20T15:19:20Z", "mount": "/mnt/rosa-models", "access": "read-only", "device": null},
  {"name": "scratch", "kind": "nvme-tcp", "state": "stalled", "reason": "", "since": "2026-11-20T15:21:14Z",
   "mount": "/mnt/scratch", "access": "exclusive", "device": "nvme3n1"},
  {"name": "nas", "kind": "nfs", "state": "down", "reason": "", "since": "2026-11-20T12:00:00Z",
   "down": {"since": "2026-11-20T12:00:00Z", "by": "alice"},
   "mount": "/mnt/dell-shared", "access": "read-only", "device": "192.168.0.98:/data/shared"}],
 "targets": [{"name": "rose", "address": "192.168.0.100", "port": 4420, "controller": "nvme4", "reason": null,
   "asked_at": "2026-11-20T15:19:20Z", "offered": [{"subsystem": "raid5-data", "configured": true},
   {"subsystem": "raid6-archive", "configured": false}, {"subsystem": "scratch\u001b[31m", "configured": false},
   {"subsystem": "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555", "configured": false},
   {"subsystem": "spare", "configured": false}, {"subsystem": "tape", "configured": false}]},
  {"name": "lily", "address": "192.168.0.101", "offered": [{"subsystem": "models", "configured": true}]}],
 "stages": [
  {"dataset": "imagenet", "phase": "copying", "bytes_done": 61200000000, "bytes_total": 142000000000,
   "files_done": 552000, "files_total": 1281167, "bytes_per_second": 2310000000, "seconds": 27.1, "eta_s": 35.2,
   "bottleneck": "source", "jobs": ["7"]},
  {"dataset": "llama", "phase": "queued", "bytes_done": 0, "bytes_total": 0, "files_done": 0, "files_total": 0,
   "bytes_per_second": 0, "seconds": 0, "eta_s": null, "bottleneck": "", "jobs": ["8", "9"],
   "wanted_by": ["slurm job 123 (alice)", "slurm job 124 (bob)"]},
  {"dataset": "models:qwen", "phase": "stalled", "bytes_done": 1500000000, "bytes_total": 6000000000, "files_done": 3,
   "files_total": 9, "bytes_per_second": 0, "seconds": 4.5, "eta_s": null, "bottleneck": "source", "jobs": ["10"],
   "reason": "volume models is waiting; it resumes automatically when that is over"}],
 "cache": {"path": "/var/lib/spark-stage/cache", "capacity_bytes": 2000000000000, "used_bytes": 142000000000,
           "free_bytes": 1858000000000},
 "memory": {"page_cache": "drop", "bytes": 19400004096, "datasets": [
   {"name": "imagenet", "bytes": 3400000000, "estimated": true, "freed_bytes": 0},
   {"name": "llama", "bytes": 16000000000, "estimated": false, "freed_bytes": 135000000000},
   {"name": "small", "bytes": 4096, "estimated": false, "freed_bytes": 0}]}})json";

constexpr char kNothing[] = R"({"version": "0.1.0", "uptime_s": 1, "volumes": [], "stages": [],
 "cache": {"path": "/var/lib/spark-stage/cache", "capacity_bytes": 0, "used_bytes": 0, "free_bytes": 3500000000000,
           "read_only": false, "writable_because": "mounting /var/lib/spark-stage/cache/data read-only for jobs: Operation not permitted",
           "warnings": ["other users can read and lock what is in /data/cache/.trash: its file system does not keep modes"]}})";

class Status : public ::testing::Test {
 protected:
  Program program;
};

TEST_F(Status, ShowsVolumesWithReasonsAndNextSteps) {
  program.client.answer("GET /v1/status", 200, kBusy);
  EXPECT_EQ(program.run({"status"}), 0);
  expect_golden("status.txt", program.output());
  EXPECT_EQ(program.errors(), "");
}

TEST_F(Status, ShowsTheWarningsOfVolumesThatAreDownOrReady) {
  program.client.answer("GET /v1/status", 200, R"({"volumes": [
    {"name": "models", "state": "down", "warnings": ["its connection stayed as it went down: another program uses it"]},
    {"name": "scratch", "state": "ready", "warnings": ["first\u001b[2J", "second"]}]})");
  EXPECT_EQ(program.run({"status"}), 0);
  for (const char* shown :
       {"up models`\n    warning: its connection stayed as it went down: another program uses it\n",
        "    warning: first\\x1b[2J\n    warning: second\n"})
    EXPECT_NE(program.output().find(shown), std::string::npos) << shown << "\n" << program.output();
}

TEST_F(Status, WithNamesShowsOnlyThose) {
  program.client.answer("GET /v1/status", 200, kBusy);
  EXPECT_EQ(program.run({"status", "models", "imagenet"}), 0);
  for (const char* shown : {"models  waiting", "STAGING", "imagenet: copying"})
    EXPECT_NE(program.output().find(shown), std::string::npos) << shown << "\n" << program.output();
  for (const char* other : {"nas", "scratch", "llama", "CACHE", "OFFERED"})
    EXPECT_EQ(program.output().find(other), std::string::npos) << other << "\n" << program.output();
}

TEST_F(Status, AnUnknownNameSuggestsTheNearest) {
  program.client.answer("GET /v1/status", 200, kBusy);
  EXPECT_EQ(program.run({"status", "modles"}), 3);
  EXPECT_EQ(program.errors(), "spark-stage: there is no volume 'modles' - did you mean 'models'?\n");
}

TEST_F(Status, WithoutVolumesExplainsHowToBegin) {
  program.client.answer("GET /v1/status", 200, kNothing);
  EXPECT_EQ(program.run({"status"}), 0);
  expect_golden("status-empty.txt", program.output());
}

TEST_F(Status, SaysWhyTheCacheCannotBeUsed) {
  program.client.answer("GET /v1/status", 200,
                        R"({"version": "0.1.0", "uptime_s": 1, "volumes": [], "stages": [], "cache": null,
                            "cache_problem": "opening the cache /scratch: it has nothing of a cache - mount the drive"})");
  EXPECT_EQ(program.run({"status"}), 0);
  EXPECT_NE(program.output().find("CACHE\n"), std::string::npos);
  EXPECT_NE(program.output().find("nothing can be staged: opening the cache /scratch"), std::string::npos)
      << program.output();
}

TEST_F(Status, SaysThatTheConfigurationFileCannotBeUsed) {
  program.client.answer("GET /v1/status", 200,
                        R"({"volumes": [], "config_problem": "spark-stage.yaml:3:1: unknown key 'volume'"})");
  EXPECT_EQ(program.run({"status"}), 0);
  EXPECT_TRUE(
      program.output().starts_with("an older configuration is in force: spark-stage.yaml:3:1: unknown key"))
      << program.output();
}

TEST_F(Status, TheProblemsOfAConfigurationFileAreOneSentence) {
  program.client.answer("GET /v1/status", 200, R"({"volumes": [], "config_problem": "c:1: one\nc:2: two"})");
  EXPECT_EQ(program.run({"status"}), 0);
  EXPECT_NE(program.output().find("c:1: one; c:2: two"), std::string::npos) << program.output();
}

TEST_F(Status, ASimulatedHostIsNamedFirst) {
  program.client.answer("GET /v1/status", 200,
                        R"({"simulated": true, "volumes": [{"name": "datasets", "state": "ready"}]})");
  EXPECT_EQ(program.run({"status"}), 0);
  EXPECT_TRUE(program.output().starts_with("SIMULATED HOST\n\nNAME")) << program.output();
}

TEST_F(Status, OnATerminalIsColouredAndFits) {
  program.context.terminal = {true, true, 72, true};
  program.client.answer("GET /v1/status", 200, kBusy);
  EXPECT_EQ(program.run({"status"}), 0);
  expect_golden_screen("status-colour.txt", program.output(), 72);
}

TEST_F(Status, JsonIsTheDaemonsAnswer) {
  program.client.answer("GET /v1/status", 200, kBusy);
  EXPECT_EQ(program.run({"status", "--json"}), 0);
  EXPECT_EQ(parse_json(program.output()).value(), parse_json(kBusy).value());
}

TEST_F(Status, SurvivesAnAnswerOfAnotherShape) {
  program.client.answer("GET /v1/status", 200,
                        R"({"volumes": [1, {"name": 5, "since": "yesterday"}], "stages": [null, {}]})");
  EXPECT_EQ(program.run({"status"}), 0);
}

TEST_F(Status, ExternalNamesAreEscapedForTheTerminal) {
  program.client.answer("GET /v1/status", 200, R"({"volumes": [{"name": "a\u001b[2Jb", "state": "ready"}]})");
  EXPECT_EQ(program.run({"status"}), 0);
  EXPECT_EQ(program.output().find('\x1b'), std::string::npos);
}

TEST_F(Status, PassesOnTheDaemonsRefusal) {
  program.client.answer(
      "GET /v1/status", 403,
      R"({"error": {"kind": "denied", "what": "user bob may not read", "hint": "join the group spark-stage"}})");
  EXPECT_EQ(program.run({"status"}), 1);
  EXPECT_EQ(program.errors(), "spark-stage: user bob may not read - join the group spark-stage\n");
}

TEST_F(Status, AnAnswerThatIsNotJsonIsQuoted) {
  program.client.answer("GET /v1/status", 200, "<html>");
  EXPECT_EQ(program.run({"status"}), 1);
  EXPECT_NE(program.errors().find("'<html>'"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace spark::cli
