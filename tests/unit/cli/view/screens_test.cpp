// The user's view: each verb's complete screen on a terminal of 80 columns, and its exit status
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bench/report/run_folder.hpp"
#include "tests/support/fake_sysfs.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/bench/sample_record.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Screen : public ::testing::Test {
 protected:
  Screen() { program.context.terminal = {true, true, 80, false, false, 24}; }

  void job(const std::string& request, const std::string& event) {
    program.client.answer(request, 202, R"({"id": "7"})");
    program.client.stream_once("/v1/jobs/7/events", {{event}});
  }
  void done(const std::string& request, const std::string& result) {
    job(request, R"({"event": "done", "result": )" + result + "}");
  }
  void failed(const std::string& request, const std::string& error) {
    job(request, R"({"event": "failed", "error": )" + error + "}");
  }

  // Runs the next command of the session.
  void type(const std::vector<std::string>& arguments) {
    program.out.str("");
    program.err.str("");
    const int status = program.run(arguments);
    std::string shown = program.errors();
    if (!shown.empty() && shown.back() != '\n') shown += "\n";  // ends the line of the user's input
    shown += program.output();
    for (const std::string& path : hidden) {
      for (std::size_t at = 0; (at = shown.find(path)) != std::string::npos;)
        shown.replace(at, path.size(), "/tmp/x");
    }
    std::string typed;
    for (const std::string& word : arguments) {
      const bool is_hidden = std::ranges::find(hidden, word) != hidden.end();
      typed += " " + (is_hidden ? "/tmp/x" : word);
    }
    session += "$ spark-stage" + typed + "\n" + shown + "[" + std::to_string(status) + "]\n\n";
  }

  Program program;
  std::string session;
  std::vector<std::string> hidden;  // paths that differ in each run
};

constexpr char kWaiting[] = R"({"volumes": [{"name": "datasets", "state": "waiting", "reason":
  "connecting raid5-data to 192.168.0.100:4420: connection refused - is the target listening? The next attempt is in 8 s"}]})";

TEST_F(Screen, OfStatusHasTheReasonWhyAnOutputsNewestCheckpointIsNotSent) {
  program.client.answer("GET /v1/status", 200,
                        R"({"volumes": [], "outputs": [{"name": "run7", "destination": "nas:run7",
    "latest_published": null, "published_at": null, "backlog_bytes": 0, "reason": null,
    "unsent": "step-100 is not on nas:run7, as it is not complete: it has no DONE yet"}]})");
  type({"status"});
  EXPECT_NE(session.find("run7: nothing is on nas:run7 yet; step-100 is not on nas:run7, as it is not"),
            std::string::npos)
      << session;
}

TEST_F(Screen, OfWait) {
  program.client.answer("GET /v1/volumes/datasets", 200, kWaiting);
  program.client.fail_once(
      "GET /v1/volumes/datasets",
      {Errc::Unavailable,
       "asking spark-staged on /run/spark-stage/api.sock: there is no such socket, the daemon is not running",
       ""});
  program.client.answer("GET /v1/volumes/datasets", 200,
                        R"({"volumes": [{"name": "datasets", "state": "ready"}]})");
  type({"wait", "datasets"});
  program.client.answer(
      "GET /v1/volumes/datasts", 404,
      R"({"error": {"kind": "not_found", "what": "no volume datasts in the configuration", "hint": "did you mean datasets?"}})");
  type({"wait", "datasts"});
  Program late;
  late.context.terminal = program.context.terminal;
  late.client.answer("GET /v1/volumes/datasets", 200, kWaiting);
  const int status = late.run({"wait", "datasets", "--timeout", "90s"});
  session +=
      "$ spark-stage wait datasets --timeout 90s\n" + late.errors() + "[" + std::to_string(status) + "]\n";
  expect_golden_screen("wait.txt", session);
}

TEST_F(Screen, OfVolumes) {
  done("POST /v1/volumes/datasets/up", R"({"volume": "datasets", "state": "waiting"})");
  type({"volumes", "up", "datasets"});
  failed("POST /v1/volumes/datasets/down", R"json({"kind": "refused", "what":
    "volume datasets is in use by pid 4242 (python), pid 4243 (python) and 14 more", "hint": "end them first: `sudo fuser -vm /mnt/rosa-storage` shows them"})json");
  type({"volumes", "down", "datasets"});
  done("POST /v1/volumes/models/publish", R"({"volume": "models", "state": "ready",
    "published": {"generation": 8, "host": "spark1", "at": "2026-11-22T05:00:00Z"}})");
  type({"volumes", "publish", "models"});
  program.client.answer("GET /v1/volumes/models", 200,
                        R"json({"volumes": [{"name": "models", "state": "refused",
    "reason": "the host with host ID 12345678-9abc-def0-1234-56789abcdef0 holds the reservation of namespace 1 of raid5-models",
    "fence": {"reservation": false, "mmp": true, "held_by": "the host with host ID 12345678-9abc-def0-1234-56789abcdef0"}}]})json");
  done("POST /v1/volumes/models/take",
       R"({"volume": "models", "state": "mounting", "taken_from": "host 'spark2'"})");
  program.in.str("models\n");
  type({"volumes", "take", "models"});
  program.client.answer(
      "GET /v1/volumes/modles", 404,
      R"({"error": {"kind": "not_found", "what": "no volume modles in the configuration", "hint": "did you mean models?"}})");
  type({"volumes", "take", "modles"});
  expect_golden_screen("volumes.txt", session);
}

TEST_F(Screen, OfTheCachesVerbs) {
  done(
      "POST /v1/datasets/imagenet/verify",
      R"({"dataset": "imagenet", "bytes": 142000000000, "files": 1281167, "seconds": 61.5, "sha256_files": 12})");
  type({"verify", "imagenet", "--sha256"});
  failed("POST /v1/datasets/models/verify", R"({"kind": "mismatch",
    "what": "verifying dataset models: llama/model-00004-of-00191.safetensors has other content than when it was staged",
    "hint": "`spark-stage stage models` stages it anew"})");
  type({"verify", "models"});
  done("POST /v1/scrubs", R"({"datasets": [
    {"name": "imagenet", "state": "ready", "reason": null, "bytes": 142000000000, "files": 1281167, "seconds": 60},
    {"name": "models", "state": "failed", "reason": "llama/model-00004-of-00191.safetensors has other content than when it was staged"},
    {"name": "laion", "state": null, "reason": "it was evicted"}]})");
  type({"scrub"});
  done("POST /v1/datasets/imagenet/evict", R"({"dataset": "imagenet", "freed_bytes": 142000000000})");
  type({"evict", "imagenet"});
  program.client.answer("POST /v1/datasets/laion/evict", 409, R"({"error": {"kind": "refused",
    "what": "dataset laion is being staged", "hint": "wait for it, or press ^C in the `spark-stage stage` or `run` that waits for it; one that was detached: `spark-stage cancel 7`"}})");
  type({"evict", "laion"});
  done("POST /v1/drops", R"({"datasets": [
    {"name": "imagenet", "bytes": 0, "estimated": false, "freed_bytes": 42000000000},
    {"name": "llama", "bytes": 16060000000, "estimated": false, "freed_bytes": 0}]})");
  type({"drop"});
  program.client.answer("DELETE /v1/leases/3ee4d2ad", 200, "{}");
  type({"release", "3ee4d2ad"});
  expect_golden_screen("cache-verbs.txt", session);
}

constexpr char kJobs[] = R"json({"jobs": [
  {"id": "3", "verb": "evict", "subject": "laion", "holder": "pid 4100 (spark-stage), uid 1000", "state": "done",
   "started": "2026-11-20T15:00:00Z", "ended": "2026-11-20T15:20:56Z", "progress": null, "result": {}, "error": null},
  {"id": "4", "verb": "verify", "subject": "models", "holder": "pid 4101 (spark-stage), uid 1000", "state": "failed",
   "started": "2026-11-20T15:00:00Z", "ended": "2026-11-20T15:21:11Z", "progress": null, "result": null,
   "error": {"kind": "mismatch", "what": "verifying dataset models: llama/model-00004-of-00191.safetensors has other content than when it was staged", "hint": ""}},
  {"id": "5", "verb": "stage", "subject": "coco", "holder": "slurm job 122 (bob)", "state": "failed",
   "started": "2026-11-20T15:00:00Z", "ended": "2026-11-20T15:21:16Z", "progress": null, "result": null,
   "error": {"kind": "cancelled", "what": "staging was cancelled", "hint": ""}},
  {"id": "6", "verb": "stage", "subject": "imagenet, models", "holder": "slurm job 123 (alice)", "state": "running",
   "started": "2026-11-20T15:21:00Z", "ended": null, "result": null, "error": null,
   "progress": {"dataset": "imagenet", "phase": "copying", "bytes_done": 61200000000, "bytes_total": 142000000000,
                "bytes_per_second": 2310000000.0, "eta_s": 35.1}},
  {"id": "7", "verb": "stage", "subject": "datasets:laion/part-07", "holder": "pid 4242 (spark-stage), uid 1001",
   "state": "running", "started": "2026-11-20T15:21:00Z", "ended": null, "result": null, "error": null,
   "progress": {"dataset": "laion", "phase": "stalled", "bytes_done": 0, "bytes_total": 0,
                "reason": "volume datasets is stalled; it resumes automatically when that is over"}}]})json";

TEST_F(Screen, OfJobs) {
  program.client.answer("GET /v1/jobs", 200, kJobs);
  type({"jobs"});
  program.client.answer("DELETE /v1/jobs/6", 200, "{}");
  program.client.answer(
      "DELETE /v1/jobs/5", 404,
      R"json({"error": {"kind": "not_found", "what": "job 5 (stage) has ended already"}})json");
  program.client.answer("DELETE /v1/jobs/7", 403, R"json({"error": {"kind": "denied",
    "what": "job 7 was asked for by pid 4242 (spark-stage), uid 1001: uid 1000 may not cancel it",
    "hint": "its requester and root may"}})json");
  type({"cancel", "5", "6", "7"});
  program.client.answer("GET /v1/jobs/6", 200,
                        R"({"id": "6", "verb": "stage", "subject": "imagenet, models", "state": "running"})");
  program.client.stream_once("/v1/jobs/6/events", {{R"({"event": "done", "result": {}})"}});
  type({"wait", "--job", "6"});
  type({"wait", "datasets", "--job", "6"});
  expect_golden_screen("jobs.txt", session);
}

TEST_F(Screen, OfNoJobs) {
  program.client.answer("GET /v1/jobs", 200, R"({"jobs": []})");
  type({"jobs"});
  type({"cancel", "7"});
  type({"wait", "--job", "7"});
  expect_golden_screen("jobs-empty.txt", session);
}

TEST_F(Screen, OfAnEmptyCachesVerbs) {
  done("POST /v1/scrubs", R"({"datasets": []})");
  type({"scrub"});
  done("POST /v1/drops", R"({"datasets": []})");
  type({"drop"});
  program.client.answer(
      "DELETE /v1/leases/00000000", 404,
      R"({"error": {"kind": "not_found", "what": "there is no lease 00000000", "hint": "`spark-stage ls` shows them"}})");
  type({"release", "00000000"});
  expect_golden_screen("cache-verbs-empty.txt", session);
}

TEST_F(Screen, OfConfig) {
  const test::TempFolder folder;
  const std::string file = folder.path() / "new.yaml";
  hidden = {file};
  program.context.terminal = {};  // avoids wrapping that depends on the path's length
  std::ofstream(file) << "version: 1\ntargets:\n  rose: {address: 192.168.0.100}\nvolumes:\n  datasets:\n"
                         "    target: rose\n    subsystem: raid5-data\n    mount: /mnt/a\n";
  type({"config", "check", file});
  type({"--config", file, "config", "show"});
  std::ofstream(file) << "version: 1\nvolumse: {}\n";
  type({"config", "check", file});
  program.client.answer("POST /v1/plan", 200,
                        R"({"volumes": [{"name": "datasets", "action": "nothing", "changes": [],
    "refused": null}], "settings": []})");
  type({"config", "plan"});
  expect_golden("config.txt", session);
}

TEST_F(Screen, OfConfigCheckWithAVolumeThatIsTooSmallForAnOutput) {
  const test::TempFolder folder;
  const std::string file = folder.path() / "new.yaml";
  program.context.terminal = {};
  std::ofstream(file) << "version: 1\nvolumes:\n  nas: {nfs: \"10.0.0.1:/data\", mount: /mnt/nas, access: "
                         "exclusive}\noutputs:\n  run7: {path: /out, volume: nas, complete: dcp, keep: 3}\n";
  for (const std::string room : {"400000000000", "399000000000"}) {
    program.client.answer(
        "GET /v1/outputs", 200,
        R"({"outputs": [{"name": "run7", "newest_bytes": 100000000000, "volume_bytes": )" + room + "}, {}]}");
  }
  const std::string warning = "keep: 3 needs room for 4 checkpoints of 100 GB, and volume nas has 399 GB";
  type({"config", "check", file});
  EXPECT_EQ(session.find(warning), std::string::npos) << session;
  type({"config", "check", file});
  EXPECT_NE(session.find(warning), std::string::npos) << session;
}

TEST_F(Screen, OfBenchsRuns) {
  const test::TempFolder folder;
  const std::string runs = folder.path() / "runs";
  hidden = {runs};
  program.context.terminal = {};
  type({"bench", "list", "--runs", runs});
  type({"bench", "compare", "last", "last", "--runs", runs});
  bench::Record before = bench::sample_record(), after = before;
  before.run_id = "20261120T162126Z-1f3a";
  after.run_id = "20261121T070000Z-77aa";
  for (const bench::Record& record : {before, after}) {
    const auto kept = bench::RunFolder::make(runs, record.run_id);
    ASSERT_TRUE(kept) << kept.error().message();
    ASSERT_TRUE(kept->write(record));
  }
  type({"bench", "list", "--runs", runs});
  type({"bench", "compare", "1f3a", "last", "--runs", runs});
  type({"bench", "merge", "1f3a", "last", "--runs", runs});
  type({"bench", "merge", "last", "last", "--runs", runs});
  expect_golden("bench-runs.txt", session);
}

TEST_F(Screen, OfImportOnAHostThatHasNothing) {
  const test::FakeSysfs host;
  program.context.root = host.root();
  type({"import"});
  expect_golden("import-empty.txt", session);  // mostly the content of a file
}

TEST_F(Screen, OfCopyInANarrowTerminal) {
  program.context.terminal.columns = 60;
  program.context.copy = [](auto&&...) -> Result<staging::CopyReport> {
    return staging::CopyReport{4 * kGiB, 4, 12.0, "abcd", kGiB, 0, 0, kMiB, 0, false, {}, {}};
  };
  type({"copy", "/mnt/a/imagenet", "/data/imagenet"});
  program.context.copy = [](auto&&...) -> Result<staging::CopyReport> {
    return fail(Errc::NotFound, "opening /mnt/a/imagenot: No such file or directory");
  };
  type({"copy", "/mnt/a/imagenot", "/data/imagenet"});
  expect_golden_screen("copy-narrow.txt", session, 60);
}

}  // namespace
}  // namespace spark::cli
