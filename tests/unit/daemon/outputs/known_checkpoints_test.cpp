#include "daemon/outputs/watch/known_checkpoints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "base/file.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::outputs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kRecords[] =
    R"(echo '{"result": {"records": [{"file": "/state/outputs/other.json", "content": {"sent": {"step-7": 7}}},
       {"file": "/state/outputs/run7.json", "content": {"flushed": {"step-1": 11}, "sent": {"step-1": 10}}}]}}' | tr -d '\n'; echo)";

LocalCheckpoint checkpoint(const std::string& name, std::int64_t mtime_ns, std::int64_t changed_ns) {
  return {.name = name,
          .mtime_ns = mtime_ns,
          .changed_ns = changed_ns,
          .written = mtime_ns,
          .bytes = 5,
          .incomplete = ""};
}

class KnownCheckpointsTest : public testing::Test {
 protected:
  KnownCheckpointsTest() {
    output.name = "run7";
    worker.on("recorded", kRecords);
    worker.on("record", note_request("records.log") + R"(echo '{"result": {}}')");
  }
  std::string recorded() const {
    std::ifstream in(worker.folder() / "records.log");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void remember(const std::vector<LocalCheckpoint>& local,
                const std::vector<PublishedCheckpoint>* published = nullptr) {
    done(known.remember(clock.steady(), local, published));
  }
  void done(asio::awaitable<void> work) {
    bool has_ended = false;
    asio::co_spawn(context, std::move(work), [&](const std::exception_ptr&) { has_ended = true; });
    ASSERT_TRUE(run_until(context, [&] { return has_ended; }));
  }

  ScriptedWorker worker;
  asio::io_context context;
  SystemClock clock;
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  Context shared{context.get_executor(), runner, clock, "/state", {}, {}, {}, {}, {}};
  config::Output output;
  KnownCheckpoints known{shared, output};
};

TEST_F(KnownCheckpointsTest, OnlyTheRecordOfThisOutputIsLoaded) {
  done(known.load());
  EXPECT_THAT(known.flushed(), ElementsAre(Pair("step-1", 11)));
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-1", 10)));
}

TEST_F(KnownCheckpointsTest, ReadingTheRecordIsRetriedAfterAnError) {
  worker.on("recorded", R"(echo '{"error": {"kind": "io", "what": "input/output error", "hint": ""}}')");
  done(known.load());
  EXPECT_THAT(known.flushed(), IsEmpty());
  worker.on("recorded", kRecords);
  done(known.load());
  EXPECT_THAT(known.flushed(), ElementsAre(Pair("step-1", 11)));
  done(known.load());
  EXPECT_EQ(worker.calls("recorded"), 2);
}

// An empty record in its place would make all local checkpoints from before the boot worthless.
TEST_F(KnownCheckpointsTest, TheRecordIsNotReplacedUntilItWasRead) {
  worker.on("recorded", R"(echo '{"error": {"kind": "io", "what": "input/output error", "hint": ""}}')");
  done(known.load());
  known.mark_sent("step-2", 21);
  remember({checkpoint("step-2", 20, 21)});
  done(known.save());
  EXPECT_EQ(worker.calls("record"), 0);
  worker.on("recorded", kRecords);
  done(known.load());
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-1", 10), Pair("step-2", 21)));
  remember({checkpoint("step-1", 10, 11), checkpoint("step-2", 20, 21)});
  EXPECT_EQ(worker.calls("record"), 1);
  EXPECT_THAT(known.flushed(), ElementsAre(Pair("step-1", 10), Pair("step-2", 20)));
}

// All hosts save the step again after a reload, and the others' shards complete what was sent before.
TEST_F(KnownCheckpointsTest, TheStateOfAShardThatWasSentIsRecorded) {
  worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/outputs/run7.json",
    "content": {"shards": {"step-2": 20}}}]}}' | tr -d '\n'; echo)");
  done(known.load());
  known.mark_shard_sent("step-3", 30);
  const std::vector<PublishedCheckpoint> published{{"step-2", 20}};
  output.nodes = 2;
  remember({checkpoint("step-3", 30, 31), checkpoint("step-2", 23, 23)}, &published);
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-2", 20)));
  EXPECT_THAT(recorded(), testing::HasSubstr(R"("shards":{"step-3":30})"));
}

// `latest` of a waiting job looks beside the check every few seconds.
TEST_F(KnownCheckpointsTest, ALookThatBeganBeforeTheLastOneChangesNothing) {
  done(known.load());
  const SteadyTime begun = clock.steady();
  remember({checkpoint("step-2", 20, 21)});
  known.mark_sent("step-2", 20);
  done(known.remember(begun, {checkpoint("step-1", 10, 11)}, nullptr));
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-2", 20)));
}

TEST_F(KnownCheckpointsTest, RecordsAreWrittenOneAfterTheOther) {
  done(known.load());
  worker.on("record",
            note_request("records.log") +
                R"(if [ $n = 1 ]; then until [ -e go ]; do sleep 0.02; done; fi; echo '{"result": {}}')");
  int ended = 0;
  const auto save = [&] {
    asio::co_spawn(context, known.save(), [&](const std::exception_ptr&) { ++ended; });
  };
  known.mark_sent("step-2", 20);
  save();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("record") == 1; }));
  known.mark_sent("step-3", 30);
  save();
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  run_until(context, [&] { return std::chrono::steady_clock::now() > later; });
  EXPECT_EQ(worker.calls("record"), 1) << "the first could end last, and replace it";
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(run_until(context, [&] { return ended == 2; }));
  EXPECT_THAT(recorded(), testing::HasSubstr(R"("step-3":30)"));
}

TEST_F(KnownCheckpointsTest, AnUnreadableRecordIsNotEmptyAndStopsNoOtherOutput) {
  const auto unreadable = [&](const std::string& name) {
    worker.on("recorded", R"(echo '{"result": {"records": [{"file": "/state/outputs/)" + name +
                              R"(.json", "error": "input/output error"}]}}')");
    done(known.load());
    return !known.has_loaded();
  };
  EXPECT_TRUE(unreadable("run7"));
  EXPECT_FALSE(unreadable("run8"));
}

TEST_F(KnownCheckpointsTest, ACheckpointThatIsNoLongerLocalIsForgotten) {
  done(known.load());
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_THAT(known.flushed(), ElementsAre(Pair("step-2", 20)));
  EXPECT_THAT(known.sent(), IsEmpty());
}

// Its folder has the same time if the job has overwritten a file since.
TEST_F(KnownCheckpointsTest,
       APublishedCheckpointOfTheSameTimeWasSentInTheStateOfItsCopyUnlessRecordedEarlier) {
  done(known.load());
  const std::vector<PublishedCheckpoint> published{{.name = "step-1", .mtime_ns = 10, .written = 9},
                                                   {.name = "step-2", .mtime_ns = 20, .written = 19},
                                                   {.name = "step-3", .mtime_ns = 29, .written = 29}};
  remember({checkpoint("step-1", 10, 12), checkpoint("step-2", 20, 21), checkpoint("step-3", 30, 31)},
           &published);
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-1", 10), Pair("step-2", 19)));
}

// After a power cut and a clock that was set back, times don't tell which are from before the boot.
TEST_F(KnownCheckpointsTest, OneInTheFutureAtTheFirstLookStaysUndatedUntilItChanges) {
  done(known.load());
  auto torn = checkpoint("step-2", 20, 21), flushed = checkpoint("step-1", 10, 11);
  auto appeared = checkpoint("step-3", 30, 31);
  torn.is_in_future = flushed.is_in_future = appeared.is_in_future = true;
  torn.incomplete = "it changed a moment ago";
  remember({torn, flushed});
  torn.is_in_future = false;
  remember({appeared, torn, flushed});
  EXPECT_THAT(known.unproven(), ElementsAre(Pair("step-2", 20)));
  ++torn.written;
  remember({appeared, torn, flushed});
  EXPECT_THAT(known.unproven(), IsEmpty());
}

TEST_F(KnownCheckpointsTest, OneThatStaysUnprovenDoesSoUntilItIsWrittenAgain) {
  done(known.load());
  auto saved = checkpoint("step-2", 20, 21), unreadable = checkpoint("step-3", 30, 31);
  saved.is_unproven = saved.stays_unproven = unreadable.is_unproven = true;
  saved.incomplete = unreadable.incomplete = "it may be complete";
  remember({unreadable, saved});
  saved.stays_unproven = false;
  remember({unreadable, saved});
  EXPECT_THAT(known.unproven(), ElementsAre(Pair("step-2", 20))) << "the other may be made readable";
  ++saved.written;
  remember({unreadable, saved});
  EXPECT_THAT(known.unproven(), IsEmpty());
}

TEST_F(KnownCheckpointsTest, AnIncompleteCheckpointDoesNotCountAsFlushed) {
  done(known.load());
  auto unfinished = checkpoint("step-2", 20, 21);
  unfinished.incomplete = "it has no DONE yet";
  remember({unfinished});
  EXPECT_THAT(known.flushed(), IsEmpty());
}

// DeepSpeed empties `latest` before it writes the new name: for a moment no checkpoint is complete.
TEST_F(KnownCheckpointsTest, ACheckpointThatIsNotCompleteAnyMoreStaysFlushedUntilItChanges) {
  done(known.load());
  auto once = checkpoint("step-2", 20, 21);
  remember({once});
  once.incomplete = "`latest` still names step-1";
  remember({once});
  EXPECT_THAT(known.flushed(), ElementsAre(Pair("step-2", 20)));
  ++once.written;
  remember({once});
  EXPECT_THAT(known.flushed(), IsEmpty());
}

TEST_F(KnownCheckpointsTest, ACheckpointIsUnchangedOnceItHasBeenAsItIsForAWhile) {
  shared.timings.steady = Duration(50);
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_THAT(known.unchanged(), IsEmpty());
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  remember({checkpoint("step-2", 20, 21), checkpoint("step-3", 30, 31)});
  EXPECT_THAT(known.unchanged(), ElementsAre(Pair("step-2", 20)));
  remember({checkpoint("step-2", 20, 22)});
  EXPECT_THAT(known.unchanged(), ElementsAre(Pair("step-2", 20))) << "a chmod, or a hard link";
  remember({checkpoint("step-2", 23, 23)});
  EXPECT_THAT(known.unchanged(), IsEmpty());
}

TEST_F(KnownCheckpointsTest, ARecordOfVersion020HasTheChangeInsteadOfTheWrite) {
  done(known.load());
  remember({checkpoint("step-1", 8, 10)});
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-1", 8)));
}

TEST_F(KnownCheckpointsTest, OnlyChangesAreRecorded) {
  done(known.load());
  remember({checkpoint("step-2", 20, 21)});
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_EQ(worker.calls("record"), 1);
  known.mark_sent("step-2", 21);
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_EQ(worker.calls("record"), 2);
}

TEST_F(KnownCheckpointsTest, AFailedWriteOfTheRecordIsRetried) {
  done(known.load());
  worker.on("record", R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": ""}}')");
  remember({checkpoint("step-2", 20, 21)});
  worker.on("record", R"(echo '{"result": {}}')");
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_EQ(worker.calls("record"), 2);
  remember({checkpoint("step-2", 20, 21)});
  EXPECT_EQ(worker.calls("record"), 2);
}

// The other hosts publish it with this host's earlier shard, while its job saves the step again.
TEST_F(KnownCheckpointsTest, AShardThatWasSavedAgainBeforeItIsPublishedIsNotSent) {
  done(known.load());
  known.mark_shard_sent("step-2", 20);
  const std::vector<PublishedCheckpoint> published{{"step-2", 20}};
  output.nodes = 3;
  remember({checkpoint("step-2", 30, 31)}, &published);
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-2", 20)));
}

// The job went back to an earlier step, and what is on the volume is of its first attempt.
TEST_F(KnownCheckpointsTest, AShardThatKeepLocalDeletedAndTheJobSavedAgainIsNotSent) {
  done(known.load());
  known.mark_sent("step-2", 20);
  const std::vector<PublishedCheckpoint> published{{"step-3", 30}, {"step-2", 20}};
  output.nodes = 2;
  remember({checkpoint("step-3", 30, 31)}, &published);
  remember({checkpoint("step-3", 30, 31), checkpoint("step-2", 40, 41)}, &published);
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-2", 20), Pair("step-3", 30)));
  const std::vector<PublishedCheckpoint> pruned{published[0]};
  remember({checkpoint("step-3", 30, 31)}, &pruned);
  EXPECT_THAT(known.sent(), ElementsAre(Pair("step-3", 30)));
}

// An interrupted deletion leaves the proof, if it took another file first.
TEST_F(KnownCheckpointsTest, AFolderThatHasLostFilesIsNotCompleteWhateverItsRule) {
  using config::Complete;
  done(known.load());
  for (const Complete rule :
       {Complete::Rename, Complete::Dcp, Complete::HuggingFace, Complete::DeepSpeed, Complete::Marker}) {
    output.complete = rule;
    auto one = checkpoint("step-2", 20, 21);
    one.files = {1, 2, 3};
    one.file_count = 3;
    one.inode = 7 + static_cast<std::uint64_t>(rule);
    remember({one});
    std::vector<LocalCheckpoint> now{one};
    known.mark_remnants(now);
    EXPECT_EQ(now.front().incomplete, "");
    now.front().files = {1, 3, 4};  // also if something was added
    now.front().written = 25;
    known.mark_remnants(now);
    EXPECT_THAT(now.front().incomplete, testing::HasSubstr("it has lost files since it was complete"));
    remember(now);
    now.front().incomplete.clear();
    known.mark_remnants(now);
    EXPECT_NE(now.front().incomplete, "") << "also at the next look";
    now.front().inode = 1;  // saved again
    now.front().incomplete.clear();
    known.mark_remnants(now);
    EXPECT_EQ(now.front().incomplete, "");
  }
  EXPECT_THAT(recorded(), testing::HasSubstr(R"("file_count":3,"files":[1,2,3]})")) << "and after a restart";
}

}  // namespace
}  // namespace spark::outputs
