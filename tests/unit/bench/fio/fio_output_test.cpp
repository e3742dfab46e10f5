// Known peculiarities of fio's output, captured from fio 3.33.
#include "bench/fio/fio_output.hpp"

#include <gmock/gmock.h>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Replays the captures as the output of a fio with this exit status.
FioEnd replay(const std::string& name, int exit_status) {
  FioStream stream;
  FioEnd end;
  end.exit_status = exit_status;
  for (json::object& object : stream.feed(fixture(name + ".out"))) end.last = std::move(object);
  end.cut = stream.is_inside_object();
  end.words = stream.noise();
  const std::string errors = std::string(SPARK_BENCH_FIXTURES) + "/" + name + ".err";
  if (fs::exists(errors)) end.words += "\n" + read_text(errors);
  return end;
}

TEST(FioOutput, AStatusStreamIsOneCumulativeObjectASecondAndTheLastIsTheResult) {
  FioStream stream;
  const auto objects = stream.feed(fixture("group_status.out"));
  ASSERT_EQ(objects.size(), 3u);
  const Measured first = counters_of(objects[0], Direction::Read);
  const Measured last = counters_of(objects[2], Direction::Read);
  EXPECT_GT(last.bytes, first.bytes);
  EXPECT_NEAR(first.seconds, 1.0, 0.2);
  EXPECT_NEAR(last.seconds, 2.0, 0.05);
  EXPECT_EQ(last.bytes, last.ios * 131'072);
  EXPECT_EQ(sample_count(last.bins), last.ios);
  EXPECT_FALSE(stream.is_inside_object());
  EXPECT_THAT(faults_of(replay("group_status", 0), Direction::Read, 2), IsEmpty());
}

TEST(FioOutput, ObjectsAreFoundRegardlessOfChunking) {
  const std::string text = fixture("group_status.out");
  FioStream stream;
  std::vector<json::object> objects;
  for (const char c : text) {
    for (json::object& object : stream.feed(std::string_view(&c, 1))) objects.push_back(std::move(object));
  }
  EXPECT_EQ(objects, FioStream().feed(text));
}

TEST(FioOutput, BracesAndQuotesInStringsAreNotStructure) {
  FioStream stream;
  const auto objects = stream.feed("noise {not json}\n{\"a\": \"}\\\"{\", \"b\": {\"c\": 1}}\nmore\n");
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(get_string(objects[0], "a"), "}\"{");
  EXPECT_EQ(stream.noise(), "noise {not json}\nmore\n");
}

TEST(FioOutput, TheSummedJobRuntimeOfAGroupIsUsedForCpuTimeOnly) {
  const FioEnd end = replay("group_status", 0);
  const json::object& job = end.last->at("jobs").as_array()[0].as_object();
  EXPECT_GT(get_int(job, "job_runtime").value(), 7500);
  const Measured counters = counters_of(*end.last, Direction::Read);
  EXPECT_LT(counters.seconds, 2.1);
  const double percent = get_double(job, "usr_cpu").value() + get_double(job, "sys_cpu").value();
  EXPECT_NEAR(counters.cpu_seconds, percent / 100 * 8.0, 0.2);
}

TEST(FioOutput, AnUnknownEtaAndAnAbsentJobStartDoNotMatter) {
  const FioEnd end = replay("short", 0);
  const json::object& job = end.last->at("jobs").as_array()[0].as_object();
  EXPECT_EQ(get_int(job, "eta"), 2147483647);
  EXPECT_FALSE(job.contains("job_start"));
  EXPECT_THAT(faults_of(end, Direction::Read, 0), IsEmpty());
}

TEST(FioOutput, AnInterruptedRunGivesNoResultDespiteErrorZero) {
  const FioEnd end = replay("interrupted", 128);
  ASSERT_TRUE(end.last);
  EXPECT_GT(counters_of(*end.last, Direction::Read).bytes, 0u);
  EXPECT_THAT(faults_of(end, Direction::Read, 1),
              ElementsAre(AllOf(HasSubstr("ended by a signal"), HasSubstr("terminating on signal 2"))));
}

TEST(FioOutput, AJobShorterThanItsRampHasNoSamplesAndGivesNoResult) {
  const FioEnd end = replay("no_samples", 0);
  EXPECT_GT(counters_of(*end.last, Direction::Read).bytes, 0u);
  EXPECT_THAT(faults_of(end, Direction::Read, 0), ElementsAre(HasSubstr("no latency samples")));
}

TEST(FioOutput, ARunShorterThanNineTenthsOfItsRuntimeGivesNoResult) {
  const FioEnd end = replay("short", 0);
  EXPECT_THAT(faults_of(end, Direction::Read, 5), ElementsAre(HasSubstr("of the 5.0 s asked for")));
  EXPECT_THAT(faults_of(end, Direction::Read, 0), IsEmpty());
}

TEST(FioOutput, AFailureWithoutJsonKeepsFiosWords) {
  const FioEnd end = replay("no_json", 1);
  EXPECT_FALSE(end.last);
  EXPECT_THAT(faults_of(end, Direction::Read, 5),
              ElementsAre(AllOf(HasSubstr("status 1"), HasSubstr("engine nosuch not loadable"))));
}

TEST(FioOutput, ABadPathIsAFailureWithItsCause) {
  EXPECT_THAT(faults_of(replay("bad_path", 1), Direction::Read, 5),
              ElementsAre(HasSubstr("No such file or directory")));
  // No job ran and its `error` is 0: the exit status decides.
  EXPECT_THAT(faults_of(replay("cannot_create", 1), Direction::Read, 5),
              ElementsAre(HasSubstr("failed to create dir")));
}

TEST(FioOutput, AVerifyFailureSaysThatTheDataDiffers) {
  EXPECT_THAT(faults_of(replay("verify", 1), Direction::Read, 0),
              ElementsAre(AllOf(HasSubstr("differs from the data written"), HasSubstr("bad magic header"))));
}

TEST(FioOutput, AFullDiskAndRefusedDirectIoAreNamed) {
  EXPECT_THAT(faults_of(replay("no_space", 1), Direction::Write, 0),
              ElementsAre(HasSubstr("No space left on device")));
  EXPECT_THAT(faults_of(replay("direct_refused", 1), Direction::Write, 0),
              ElementsAre(HasSubstr("does not support O_DIRECT")));
}

TEST(FioOutput, AJobErrorCountsEvenWithStatusZero) {
  EXPECT_THAT(faults_of(replay("verify", 0), Direction::Read, 0), ElementsAre(HasSubstr("reports an error")));
}

TEST(FioOutput, OutputTruncatedInsideAnObjectGivesNoResult) {
  const std::string text = fixture("group_status.out");
  FioStream stream;
  FioEnd end;
  for (json::object& object : stream.feed(text.substr(0, text.size() - 100))) end.last = std::move(object);
  end.cut = stream.is_inside_object();
  EXPECT_THAT(faults_of(end, Direction::Read, 0), ElementsAre(HasSubstr("no complete result")));
}

TEST(FioOutput, TheOtherDirectionHasNoData) {
  EXPECT_THAT(faults_of(replay("group_status", 0), Direction::Write, 0),
              ElementsAre(HasSubstr("moved no data")));
}

TEST(FioOutput, ARunEndedByTheBenchmarkGivesNoResult) {
  for (const auto& [member, word] :
       std::vector<std::pair<bool FioEnd::*, std::string>>{{&FioEnd::stopped, "interrupted"},
                                                           {&FioEnd::timed_out, "killed"},
                                                           {&FioEnd::abandoned, "hangs"}}) {
    FioEnd end = replay("group_status", 0);
    end.*member = true;
    EXPECT_THAT(faults_of(end, Direction::Read, 2), ElementsAre(HasSubstr(word)));
  }
}

TEST(FioOutput, TheTailHasTheLastOutputDeduplicatedAndPrintable) {
  EXPECT_EQ(tail_of("a\n\n  b \na\n\x1b[31mc\n"), "a; b; \\x1b[31mc");
  const std::string longer = tail_of(std::string(1000, 'x') + "\nlast words");
  EXPECT_EQ(longer, "last words");
  EXPECT_LE(tail_of(std::string(1000, 'y')).size(), 310u);
}

}  // namespace
}  // namespace spark::bench
