// ls, verify, scrub, evict, release
#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class Datasets : public ::testing::Test {
 protected:
  Program program;
};

TEST_F(Datasets, AreListedWithTheirLeases) {
  program.client.answer("GET /v1/datasets", 200, R"json({"datasets": [
    {"name": "imagenet", "state": "ready", "path": "/var/lib/spark-stage/cache/imagenet", "bytes": 142000000000,
     "files": 1281167, "generation": 3, "leases": [{"id": "3ee4d2ad", "holder": "pid 4242 (python)", "expires": null},
     {"id": "91c0ffee", "holder": "root", "expires": "2026-11-20T16:51:26Z"}],
     "staged_at": "2026-11-19T15:00:00Z", "last_used": "2026-11-20T15:16:20Z"},
    {"name": "datasets:laion/part-07", "state": "failed", "path": null, "bytes": 0, "files": 0, "leases": [],
     "staged_at": null, "last_used": null, "reason": "staging datasets:laion/part-07: the volume datasets is not ready (waiting) - see `spark-stage status`"},
    {"name": "llama", "state": "queued", "path": null, "bytes": 0, "files": 0, "staged_at": null, "last_used": null,
     "leases": [{"id": "job:slurm:123:llama", "holder": "slurm job 123 (alice)", "expires": null,
                 "job": {"system": "slurm", "id": "123", "user": "alice"}}], "wanted_by": ["slurm job 123 (alice)"]},
    {"name": "models", "state": "absent", "path": null, "bytes": 0, "files": 0, "leases": [], "staged_at": null, "last_used": null}]})json");
  EXPECT_EQ(program.run({"ls"}), 0);
  expect_golden("ls.txt", program.output());
}

TEST_F(Datasets, OneThatIsLiveBesideItsEarlierCopySaysSo) {
  program.client.answer("GET /v1/datasets", 200, R"json({"datasets": [
    {"name": "imagenet", "state": "ready", "path": "/c/1", "bytes": 1000, "files": 1, "generation": 1, "leases": [],
     "live": {"path": "/c/.live/imagenet", "bytes": 3000, "files": 2, "bytes_here": 2000}}]})json");
  EXPECT_EQ(program.run({"ls"}), 0);
  EXPECT_NE(program.output().find("/c/.live/imagenet"), std::string::npos) << program.output();
}

TEST_F(Datasets, FitTheirTerminal) {
  program.context.terminal = {true, true, 80, true};
  program.client.answer("GET /v1/datasets", 200, R"json({"datasets": [
    {"name": "datasets:laion/laion2B-en/part-00007-of-00128", "state": "ready", "bytes": 142000000000, "files": 1281167,
     "path": "/var/lib/spark-stage/cache/data/datasets:laion%2Flaion2B-en%2Fpart-00007-of-00128/3", "generation": 3,
     "leases": [{"id": "3ee4d2ad", "holder": "pid 4242 (/opt/conda/bin/python3.12), uid 1000, in slurm job 7731", "expires":
     "2026-11-20T16:51:26Z"}], "last_used": "2026-11-20T15:16:20Z"}]})json");
  EXPECT_EQ(program.run({"ls"}), 0);
  expect_golden_screen("ls-terminal.txt", program.output());
}

TEST_F(Datasets, OutdatedAndDoubtfulCopiesAreMarked) {
  program.client.answer("GET /v1/datasets", 200, R"json({"datasets": [
    {"name": "imagenet", "state": "ready", "path": "/c/imagenet", "bytes": 1000, "files": 1, "generation": 3, "leases": [],
     "staged_at": "2026-11-19T15:00:00Z", "last_used": "2026-11-20T15:16:20Z", "source_generation": 6,
     "volume_generation": 8, "outdated": true, "doubtful": false},
    {"name": "models", "state": "ready", "path": "/c/models", "bytes": 1000, "files": 1, "generation": 1, "leases": [],
     "staged_at": "2026-11-19T15:00:00Z", "last_used": "2026-11-20T15:16:20Z", "source_generation": null,
     "volume_generation": 8, "outdated": true, "doubtful": false},
    {"name": "scratch", "state": "ready", "path": "/c/scratch", "bytes": 1000, "files": 1, "generation": 1, "leases": [],
     "staged_at": "2026-11-19T15:00:00Z", "last_used": "2026-11-20T15:16:20Z", "source_generation": null,
     "volume_generation": null, "outdated": null, "doubtful": true}]})json");
  EXPECT_EQ(program.run({"ls"}), 0);
  expect_golden("ls-outdated.txt", program.output());
}

TEST_F(Datasets, CopiesFromPeersAreMarked) {
  program.client.answer("GET /v1/datasets", 200, R"json({"datasets": [
    {"name": "imagenet", "state": "ready", "path": "/c/imagenet", "bytes": 142000000000, "files": 1, "generation": 3, "leases": [],
     "last_used": "2026-11-20T15:16:20Z", "bytes_from": {"volume": 22000000000, "peers": 120000000000}},
    {"name": "models", "state": "ready", "path": "/c/models", "bytes": 1000, "files": 1, "generation": 1, "leases": [],
     "last_used": "2026-11-20T15:16:20Z", "bytes_from": {"volume": 1000, "peers": 0}},
    {"name": "old", "state": "ready", "path": "/c/old", "bytes": 1000, "files": 1, "generation": 1, "leases": [],
     "last_used": "2026-11-20T15:16:20Z", "bytes_from": null}]})json");
  EXPECT_EQ(program.run({"ls"}), 0);
  expect_golden("ls-peers.txt", program.output());
}

TEST_F(Datasets, AnEmptyListIsExplained) {
  program.client.answer("GET /v1/datasets", 200, R"({"datasets": []})");
  EXPECT_EQ(program.run({"ls"}), 0);
  expect_golden("ls-empty.txt", program.output());
}

TEST_F(Datasets, AsJson) {
  program.client.answer("GET /v1/datasets", 200, R"({"datasets": []})");
  EXPECT_EQ(program.run({"ls", "--json"}), 0);
  EXPECT_EQ(program.output(), "{\n  \"datasets\": []\n}\n");
}

TEST_F(Datasets, AreVerifiedByTheDaemon) {
  program.client.answer("POST /v1/datasets/datasets%3Alaion%2Fpart-07/verify", 202, R"({"id": "3"})");
  program.client.stream_once(
      "/v1/jobs/3/events",
      {{R"({"event": "done", "result": {"dataset": "x", "bytes": 5000, "files": 1, "seconds": 1.5}})"}});
  EXPECT_EQ(program.run({"verify", "datasets:laion/part-07"}), 0);
  EXPECT_EQ(program.output(),
            "datasets:laion/part-07: equal to its manifest - 5.00 kB, 1 file, read in 1.5 s\n");
}

TEST_F(Datasets, AnAdoptedFolderIsVerifiedByItself) {
  program.client.answer("POST /v1/datasets/llama/verify", 202, R"({"id": "3"})");
  program.client.stream_once("/v1/jobs/3/events",
                             {{R"({"event": "done", "result": {"dataset": "llama", "copy": false,
    "bytes": 5000, "files": 1, "seconds": 1.5, "sha256_files": 0,
    "adopted": {"bytes": 5000, "files": 1, "seconds": 1.5}}})"}});
  EXPECT_EQ(program.run({"verify", "llama"}), 0);
  EXPECT_EQ(program.output(),
            "llama: its adopted folder is as peers get it - 5.00 kB, 1 file, read in 1.5 s\n");
}

TEST_F(Datasets, AreVerifiedForScripts) {
  program.client.answer("POST /v1/datasets/imagenet/verify", 202, R"({"id": "3"})");
  program.client.stream_once("/v1/jobs/3/events",
                             {{R"({"event": "done", "result": {"dataset": "imagenet", "bytes": 5000,
    "files": 1, "seconds": 1.5, "sha256_files": 0}})"}});
  EXPECT_EQ(program.run({"verify", "imagenet", "--json"}), 0);
  const json::object result = json::parse(program.output()).as_object();
  EXPECT_EQ(result.at("dataset"), "imagenet");
  EXPECT_EQ(result.at("bytes"), 5000);
}

TEST_F(Datasets, VerifyOfADifferingCopyExitsWithSix) {
  program.client.answer("POST /v1/datasets/imagenet/verify", 202, R"({"id": "3"})");
  program.client.stream_once("/v1/jobs/3/events", {{R"({"event": "failed", "error": {"kind": "mismatch",
    "what": "train/7.jpg differs", "hint": "evict it"}})"}});
  EXPECT_EQ(program.run({"verify", "imagenet"}), 6);
  EXPECT_EQ(program.errors(), "spark-stage: train/7.jpg differs - evict it\n");
}

TEST_F(Datasets, AreEvicted) {
  program.client.answer("POST /v1/datasets/imagenet/evict", 202, R"({"id": "4"})");
  program.client.stream_once(
      "/v1/jobs/4/events",
      {{R"({"event": "done", "result": {"dataset": "imagenet", "freed_bytes": 142000000000}})"}});
  EXPECT_EQ(program.run({"evict", "imagenet"}), 0);
  EXPECT_EQ(program.output(), "imagenet: evicted, 142 GB freed\n");
}

TEST_F(Datasets, AreEvictedByScripts) {
  program.client.answer("POST /v1/datasets/imagenet/evict", 202, R"({"id": "4"})");
  program.client.stream_once(
      "/v1/jobs/4/events",
      {{R"({"event": "done", "result": {"dataset": "imagenet", "freed_bytes": 142000000000}})"}});
  EXPECT_EQ(program.run({"evict", "imagenet", "--json"}), 0);
  EXPECT_EQ(json::parse(program.output()).as_object().at("freed_bytes"), 142000000000);
}

TEST_F(Datasets, ALeasedDatasetDoesNotBlockTheEvictionOfOthers) {
  program.client.answer("POST /v1/datasets/imagenet/evict", 409,
                        R"({"error": {"kind": "refused", "what": "leased", "hint": ""}})");
  program.client.answer("POST /v1/datasets/models/evict", 202, R"({"id": "4"})");
  program.client.stream_once("/v1/jobs/4/events", {{R"({"event": "done", "result": {"freed_bytes": 5}})"}});
  EXPECT_EQ(program.run({"evict", "imagenet", "models", "--json"}), 7);
  const json::object answer = json::parse(program.output()).as_object();
  const json::array& datasets = answer.at("datasets").as_array();
  ASSERT_EQ(datasets.size(), 1u);
  EXPECT_EQ(datasets[0].at("name"), "models");
  EXPECT_EQ(datasets[0].at("freed_bytes"), 5);
}

TEST_F(Datasets, ALeasedDatasetIsNotEvicted) {
  program.client.answer("POST /v1/datasets/imagenet/evict", 409,
                        R"({"error": {"kind": "refused", "what": "leased", "hint": ""}})");
  EXPECT_EQ(program.run({"evict", "imagenet"}), 7);
}

TEST_F(Datasets, AreScrubbed) {
  program.client.answer("POST /v1/scrubs", 202, R"({"id": "5"})");
  program.client.stream_once("/v1/jobs/5/events", {{R"({"event": "done", "result": {"datasets": [
    {"name": "imagenet", "state": "ready", "reason": null, "bytes": 142000000000, "files": 7, "seconds": 60},
    {"name": "models", "state": "failed", "reason": "w.bin has other content"},
    {"name": "laion", "state": null, "reason": "it was evicted"}]}})"}});
  EXPECT_EQ(program.run({"scrub", "imagenet", "models", "laion"}), 6);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/scrubs {"datasets":["imagenet","models","laion"]})");
  EXPECT_EQ(program.output(),
            "imagenet: as it was staged - 142 GB, 7 files\nmodels: damaged: w.bin has other content\n"
            "laion: not read: it was evicted\n");
}

TEST_F(Datasets, AreScrubbedByVerifyAll) {
  program.client.answer("POST /v1/scrubs", 202, R"({"id": "5"})");
  program.client.stream_once("/v1/jobs/5/events", {{R"({"event": "done", "result": {"datasets": [
    {"name": "models", "state": "failed", "reason": "w.bin has other content"}]}})"}});
  EXPECT_EQ(program.run({"verify", "--all"}), 6);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/scrubs {"datasets":[]})");
  EXPECT_EQ(program.output(), "models: damaged: w.bin has other content\n");
  for (const std::vector<std::string>& mistake :
       {std::vector<std::string>{"verify"}, {"verify", "a", "--all"}, {"verify", "--all", "--sha256"}}) {
    Program mistaken;
    EXPECT_EQ(mistaken.run(mistake), 2);
    EXPECT_TRUE(mistaken.client.sent.empty());
  }
}

TEST_F(Datasets, ScrubWithoutDamageExitsWithZero) {
  program.client.answer("POST /v1/scrubs", 202, R"({"id": "5"})");
  program.client.stream_once("/v1/jobs/5/events", {{R"({"event": "done", "result": {"datasets": []}})"}});
  EXPECT_EQ(program.run({"scrub"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/scrubs {"datasets":[]})");
}

TEST_F(Datasets, AreDroppedFromMemory) {
  program.client.answer("POST /v1/drops", 202, R"({"id": "5"})");
  program.client.stream_once("/v1/jobs/5/events", {{R"({"event": "done", "result": {"datasets": [
    {"name": "llama", "bytes": 0, "estimated": false, "freed_bytes": 135000000000}]}})"}});
  EXPECT_EQ(program.run({"drop", "llama"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/drops {"datasets":["llama"]})");
  EXPECT_EQ(program.output(), "llama: 135 GB of memory freed\n");
}

TEST_F(Datasets, LeasesAreReleased) {
  program.client.answer("DELETE /v1/leases/3ee4d2ad", 200, "{}");
  EXPECT_EQ(program.run({"release", "3ee4d2ad"}), 0);
  EXPECT_EQ(program.output(), "lease 3ee4d2ad: released\n");
  EXPECT_EQ(program.run({"release", "00000000"}), 3);
}

}  // namespace
}  // namespace spark::cli
