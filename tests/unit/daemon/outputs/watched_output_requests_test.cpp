#include "tests/unit/daemon/outputs/watched_output_fixture.hpp"

namespace spark::outputs {
namespace {

using testing::AllOf, testing::HasSubstr;

constexpr char kMissing[] =
    R"(echo '{"result": {"missing": "looking at /out: No such file or directory - create the folder"}}')";
constexpr char kStep9There[] = R"(echo '{"result": {"copies": [{"name": "step-9", "mtime_ns": 90}]}}')";

class LatestCheckpoint : public WatchedOutputTest {
 protected:
  // The answer, or "KIND: MESSAGE".
  std::string answer(bool offline = false) {
    const auto found = await(context, watches->find("run7")->latest(offline));
    if (!found) return "no answer";
    if (*found) return json::serialize(**found);
    return std::string(to_string(found->error().kind)) + ": " + found->error().message();
  }
};

TEST_F(LatestCheckpoint, WaitsForACheckpointThatIsStillSettling) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  settings.outputs["run7"].path = "/out";
  const auto scan = [](const std::string& incomplete, const std::string& is_settling) {
    return R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-4", "mtime_ns": 40, "written": 41, "bytes": 5,
       "incomplete": "it has no DONE yet"}, {"name": "step-3", "mtime_ns": 30, "written": 31, "bytes": 5, "incomplete": ")" +
           incomplete + R"(", "is_settling": )" + is_settling +
           R"(}, {"name": "step-2", "mtime_ns": 20, "written": 21, "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)";
  };
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 1));
  const std::string seen = "[ -e " + (worker.folder() / "seen").string() + " ]";
  worker.on("scan-output", "if " + seen + "; then " + scan("", "false") + "; else " +
                               scan("it changed a moment ago", "true") + "; touch " +
                               (worker.folder() / "seen").string() + "; fi");
  const auto latest = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(latest && *latest);
  EXPECT_EQ((**latest).at("local"), "/out/step-3");
}

TEST_F(LatestCheckpoint, SkipsACheckpointThatKeepsChanging) {
  settings.outputs["run7"].complete = config::Complete::OnRequest;
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
       "bytes": 5, "incomplete": "it changed a moment ago", "is_settling": true}, {"name": "step-2", "mtime_ns": 20,
       "written": 21, "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  const auto latest = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(latest && *latest);
  EXPECT_EQ((**latest).at("name"), "step-2");
}

TEST_F(LatestCheckpoint, IsTheLocalCheckpointUnlessTheVolumeHasANewerOne) {
  watches->apply(settings);
  const auto local = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(*local);
  EXPECT_EQ(json::serialize(**local), R"({"name":"step-2","local":"/out/step-2"})");
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-9", "mtime_ns": 90}]}}')");
  const auto published = await(context, watches->find("run7")->latest());
  ASSERT_TRUE(*published);
  EXPECT_EQ(json::serialize(**published), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
}

// "There is none yet" makes a job start from scratch.
TEST_F(LatestCheckpoint, IsTheVolumesIfTheFolderIsMissing) {
  worker.on("scan-output", kMissing);
  worker.on("list-published", note_request("lists.log") + kStep9There);
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
  EXPECT_THAT(text_of("lists.log"), HasSubstr(R"("path":"run7","rule":"marker:DONE")"));
  EXPECT_THAT(text_of("lists.log"), testing::Not(HasSubstr(R"("uid")")))
      << "as the owner of the folder there";
  EXPECT_THAT(std::string(watches->find("run7")->to_json().at("reason").as_string()),
              HasSubstr("create the folder"));
  worker.on("list-published", R"(echo '{"result": {"copies": []}}')");
  EXPECT_THAT(answer(), HasSubstr("not_found: output run7: there is no complete checkpoint in /out"));
  away = Error{Errc::Unavailable, "volume checkpoints is connecting", ""};
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: volume checkpoints is connecting"));
  EXPECT_EQ(worker.calls("tidy-output"), 0);
}

TEST_F(LatestCheckpoint, IsUnavailableIfAFolderThatHadCheckpointsIsMissingAndTheVolumeHasNone) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-2": 21}}}]}}' | tr -d '\n'; echo)");
  worker.on("scan-output", note_request("scans.log") + kMissing);
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 3));
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: looking at /out: No such file"));
  EXPECT_EQ(text_of("scans.log").find(R"("flushed":{})"), std::string::npos)
      << "they may be there again later";
}

// Its file system may not be mounted yet: the job would go on from an older one.
TEST_F(LatestCheckpoint, IsUnavailableIfAMissingFolderHadAHigherOneThatWasNotSent) {
  const auto recorded = [](const std::string& flushed, const std::string& sent) {
    return R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
      "content": {"flushed": )" +
           flushed + R"(, "sent": )" + sent + R"(}}]}}' | tr -d '\n'; echo)";
  };
  worker.on("scan-output", kMissing);
  worker.on("list-published", kStep9There);
  worker.on("recorded", recorded(R"({"step-9": 91, "step-10": 101})", R"({"step-9": 91})"));
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("mount its file system: it had step-10, which is not on the volume"));
  worker.on("recorded", recorded(R"({"step-8": 81, "step-9": 91})", R"({"step-9": 91})"));
  settings.outputs["run7"].keep = 5;
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
}

// The output was given another folder for the next run, which the job has not made yet.
TEST_F(LatestCheckpoint, OfAnotherFolderIsNotOnTheDrive) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-10": 101}, "sent": {}, "mount": "/data", "path": "/old"}}]}}' | tr -d '\n'; echo)");
  worker.on("scan-output", kMissing);
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
}

// Only copies of the folder's owner count (a folder of the volume may belong to root).
TEST_F(LatestCheckpoint, IsOneOfTheOwnerOfTheFolderAlsoWhileThatIsAway) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-9": 91}, "sent": {"step-9": 91}, "uid": 1000}}]}}' | tr -d '\n'; echo)");
  worker.on("scan-output", kMissing);
  worker.on("list-published", note_request("lists.log") + kStep9There);
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
  EXPECT_THAT(text_of("lists.log"), HasSubstr(R"("uid":1000)"));
}

// At a start of the host, before its file system is mounted there: the record is that of the drive.
TEST_F(LatestCheckpoint, IsUnavailableOnAMountPointWhoseCheckpointsAreRecorded) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-10": 101}, "sent": {}, "mount": "/data"}}]}}' | tr -d '\n'; echo)");
  const auto scanned = [&](const std::string& mount) {
    const LocalCheckpoint stray{.name = "step-2", .written = 21, .incomplete = "it has no DONE yet"};
    worker.on("scan-output", note_request("scans.log") + R"(echo '{"result": {"uid": 1000, "checkpoints": )" +
                                 json::serialize(staging::rows_to_json(std::vector{stray})) +
                                 R"(, "mount": ")" + mount + R"("}}')");
  };
  scanned("/");  // where a job has begun to save meanwhile
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 3));
  EXPECT_THAT(
      answer(),
      AllOf(HasSubstr("unavailable: output run7: /out lacks checkpoints that it had on the file system "
                      "at /data, which is not mounted there"),
            HasSubstr("it had step-10, which is not on the volume")));
  const auto sent = await(context, watches->find("run7")->send_newest());
  ASSERT_TRUE(sent && !*sent);
  EXPECT_EQ(sent->error().kind, Errc::Unavailable) << sent->error().message();
  const json::object shown = watches->find("run7")->to_json();
  EXPECT_THAT(std::string(shown.at("reason").as_string()), HasSubstr("/out lacks checkpoints that it had"));
  EXPECT_THAT(std::string(shown.at("unsent").as_string()), HasSubstr("step-10 is not on checkpoints:run7"));
  EXPECT_EQ(text_of("scans.log").find(R"("flushed":{})"), std::string::npos);
  scanned("/data");  // they were deleted
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
  EXPECT_TRUE(run_until(context, [&] {
    return text_of("records.log").find(R"("flushed":{},"sent":{}})") != std::string::npos;
  }));
}

// Not all were copied to the new drive: those that are on the volume are not missed.
TEST_F(LatestCheckpoint, IsNotMissedOnANewFileSystemIfItIsOnTheVolume) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-9": 91}, "sent": {"step-9": 91}, "mount": "/data"}}]}}' | tr -d '\n'; echo)");
  const LocalCheckpoint next{.name = "step-10", .written = 101};
  worker.on("scan-output", R"(echo '{"result": {"uid": 1000, "checkpoints": )" +
                               json::serialize(staging::rows_to_json(std::vector{next})) +
                               R"(, "mount": "/"}}')");
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  EXPECT_TRUE(calls("stage-out", 1)) << "step-10 is sent";
  EXPECT_THAT(answer(), HasSubstr(R"("name":"step-10")"));
}

// The record says that it was sent; the volume can't be listed.
TEST_F(LatestCheckpoint, IsNotCalledUnsentWhileItsFolderAndTheVolumeAreAway) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/stage-outs/outputs/run7.json",
    "content": {"flushed": {"step-9": 91}, "sent": {"step-9": 91}}}]}}' | tr -d '\n'; echo)");
  worker.on("scan-output", kMissing);
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  watches->apply(settings);
  ASSERT_TRUE(calls("scan-output", 2));
  EXPECT_EQ(watches->find("run7")->to_json().at("unsent"), nullptr);
}

// Nobody knows what is on it: the record of the state folder may be lost, or of an earlier configuration.
TEST_F(LatestCheckpoint, IsUnavailableWhileTheFileSystemOfItsFolderIsNotMounted) {
  worker.on("scan-output",
            R"(echo '{"result": {"missing": "/out: /data is not mounted", "unmounted": true}}')");
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: /out: /data is not mounted - mount it"));
  EXPECT_EQ(worker.calls("stage-out"), 0);
  EXPECT_EQ(answer(true), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})") << "the drive is dead";
  worker.on("list-published", R"(echo '{"result": {"copies": []}}')");
  EXPECT_THAT(answer(true), HasSubstr("unavailable: output run7: /out: /data is not mounted"))
      << "a job would train from scratch";
}

TEST_F(LatestCheckpoint, IsUnavailableOfflineIfNobodyKnowsWhatTheUnmountedFolderHad) {
  worker.on("recorded", R"(echo '{"error": {"kind": "failed", "what": "Input/output error", "hint": ""}}')");
  worker.on("scan-output",
            R"(echo '{"result": {"missing": "/out: /data is not mounted", "unmounted": true}}')");
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  EXPECT_THAT(answer(true), HasSubstr("unavailable: output run7: /out: /data is not mounted"));
}

// A person has copied it there: a job would start from scratch beside it.
TEST_F(LatestCheckpoint, IsUnavailableIfTheOnlyOneIsOnTheVolumeWithoutAManifest) {
  worker.on("scan-output", kMissing);
  worker.on("list-published", R"(echo '{"result": {"copies": [], "unknown": ["step-9"]}}')");
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: checkpoints:run7/step-9 may be a checkpoint"));
}

// After a clean reboot right after the last save, training from scratch would replace good checkpoints.
TEST_F(LatestCheckpoint, IsUnavailableIfTheOnlyOneIsFromBeforeTheStartOfTheHostAndUnproven) {
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
       "bytes": 5, "incomplete": "it has no DONE yet"}, {"name": "step-2", "mtime_ns": 20, "written": 21,
       "bytes": 5, "incomplete": "it is older", "is_unproven": true}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  const std::string told = answer();
  EXPECT_THAT(told,
              HasSubstr("unavailable: output run7: step-2 in /out may be complete, but that is not known: "
                        "it is older"));
  EXPECT_THAT(told, HasSubstr("delete it, or send it with `spark-stage stage-out /out/step-2 "
                              "checkpoints:run7/step-2`"));
  worker.on("list-published", kStep9There);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
}

TEST_F(LatestCheckpoint, NamesAHigherOneThatMayBeComplete) {
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
       "bytes": 5, "incomplete": "its DONE is older", "is_unproven": true}, {"name": "step-2", "mtime_ns": 20,
       "written": 21, "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-2","local":"/out/step-2","unproven":)"
                      R"({"name":"step-3","reason":"its DONE is older"}})");
  EXPECT_THAT(watches->find("run7")->facts().unsent,
              testing::StartsWith("step-3 is not on checkpoints:run7"));
  worker.on("list-published", kStep9There);
  EXPECT_EQ(answer(), R"({"name":"step-9","dataset":"checkpoints:run7/step-9"})");
}

TEST_F(LatestCheckpoint, IsUnavailableIfTheManifestOfAHigherOneCannotBeRead) {
  const auto there = [](const std::string& unreadable) {
    return R"(echo '{"result": {"copies": [{"name": "step-1", "mtime_ns": 10}], "unreadable": [{"name": ")" +
           unreadable + R"(", "reason": "it is damaged"}]}}')";
  };
  worker.on("list-published", there("step-3"));
  watches->apply(settings);
  EXPECT_THAT(answer(),
              HasSubstr("unavailable: output run7: step-3 on the volume may be complete: it is damaged"));
  EXPECT_EQ(watches->find("run7")->facts().reason, "it is damaged");
  EXPECT_TRUE(run_until(context, [&] { return outs->totals().sent > 0; })) << "the others are sent";
  worker.on("list-published", there("step-0"));
  EXPECT_EQ(answer(), R"({"name":"step-2","local":"/out/step-2"})");
  worker.on("list-published", there("last.ckpt"));
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: last.ckpt on the volume may be complete"));
}

TEST_F(LatestCheckpoint, NamesALowerOneOfAnotherSeriesThatWasSavedLater) {
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "stage1_step_5000", "mtime_ns": 10},
    {"name": "stage1_step_4000", "mtime_ns": 90}, {"name": "stage2_step_100", "mtime_ns": 15}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  EXPECT_THAT(answer(),
              HasSubstr(R"({"name":"stage1_step_5000","dataset":"checkpoints:run7/stage1_step_5000",)"
                        R"("later":{"name":"step-2"})"));
  worker.on("scan-output", kMissing);
  EXPECT_THAT(answer(), HasSubstr(R"("later":{"name":"stage2_step_100"})"));
}

TEST_F(LatestCheckpoint, IsNeverMissingBecauseOfAnError) {
  worker.on(
      "scan-output",
      R"(echo '{"error": {"kind": "not_found", "what": "worker: No such file or directory", "hint": ""}}')");
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("unavailable: worker: No such file or directory"));
  worker.on("scan-output", kOneThere);
  worker.on(
      "list-published",
      R"(echo '{"error": {"kind": "not_found", "what": "worker: No such file or directory", "hint": ""}}')");
  EXPECT_THAT(answer(), HasSubstr("unavailable: "));
}

TEST_F(LatestCheckpoint, IsUnavailableWhileTheRecordOfFlushedOnesCannotBeRead) {
  worker.on("recorded", R"(echo '{"error": {"kind": "failed", "what": "Input/output error", "hint": ""}}')");
  worker.on("scan-output", R"(echo '{"result": {"uid": 1000, "checkpoints": []}}')");
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: the record"));
}

// Another host may have published a newer one, and this host's next checkpoint would hide it.
TEST_F(LatestCheckpoint, IsNotAnOlderLocalCheckpointWhileTheVolumeCannotBeListed) {
  worker.on("list-published", kStep9There);
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 2));
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  EXPECT_THAT(
      answer(),
      HasSubstr("unavailable: output run7: volume checkpoints is stalled; step-2 in /out is complete, but"));
  EXPECT_THAT(answer(), HasSubstr("`spark-stage latest --offline`"));
}

TEST_F(LatestCheckpoint, IsALocalOneWhileTheVolumeIsAwayOnlyIfTheCallerAcceptsIt) {
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-1", "mtime_ns": 10}]}}')");
  watches->apply(settings);
  ASSERT_TRUE(calls("list-published", 2));
  away = Error{Errc::Unavailable, "volume checkpoints is stalled", ""};
  EXPECT_THAT(answer(), HasSubstr("unavailable: output run7: volume checkpoints is stalled; step-2"));
  const auto offline = await(context, watches->find("run7")->latest(true));
  ASSERT_TRUE(*offline) << (*offline).error().message();
  EXPECT_EQ(json::serialize(**offline), R"({"name":"step-2","local":"/out/step-2"})");
}

TEST_F(LatestCheckpoint, OfMegatronIsRefusedIfItWouldHaveToBeStaged) {
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "iter_0000100", "mtime_ns": 90}]}}')");
  watches->apply(settings);
  EXPECT_THAT(answer(), HasSubstr("refused: output run7: iter_0000100 is on the volume"));
}

// Another host has gone on, and saved its last.ckpt since.
TEST_F(LatestCheckpoint, WithoutAStepIsTheLaterOfTwoWithOneName) {
  settings.outputs["run7"].complete = config::Complete::Rename;
  worker.on("scan-output",
            R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "last.ckpt", "mtime_ns": 30,
       "written": 31, "bytes": 5, "incomplete": ""}]}}' | tr -d '\n'; echo)");
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "last.ckpt", "mtime_ns": 90}]}}')");
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"last.ckpt","dataset":"checkpoints:run7/last.ckpt"})");
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "last.ckpt", "mtime_ns": 30}]}}')");
  EXPECT_EQ(answer(), R"({"name":"last.ckpt","local":"/out/last.ckpt"})");
}

TEST_F(LatestCheckpoint, IsTheOneOfTheHighestStepWhateverTheTimes) {
  worker.on(
      "list-published",
      R"(echo '{"result": {"copies": [{"name": "export", "mtime_ns": 99}, {"name": "step-1", "mtime_ns": 90}]}}')");
  watches->apply(settings);
  EXPECT_EQ(answer(), R"({"name":"step-2","local":"/out/step-2"})");
}

TEST_F(WatchedOutputTest, AnUnprovenCheckpointThatOtherHostsWaitForIsTold) {
  settings.outputs["run7"].nodes = 2;
  worker.on(
      "scan-output",
      R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
       "bytes": 5, "incomplete": ""}, {"name": "step-2", "mtime_ns": 20, "written": 21, "bytes": 5,
       "incomplete": "a clock was set", "is_unproven": true}]}}' | tr -d '\n'; echo)");
  worker.on("list-published", R"(echo '{"result": {"copies": [{"name": "step-3", "mtime_ns": 30}], "begun": [
       {"name": "step-2", "own_written": 0, "has_others": true}]}}' | tr -d '\n'; echo)");
  watches->apply(settings);
  EXPECT_TRUE(run_until(context, [&] {
    return watches->find("run7")->facts().unsent ==
           "step-2 is not on checkpoints:run7, as it is not complete: a clock was set";
  }));
}

}  // namespace
}  // namespace spark::outputs
