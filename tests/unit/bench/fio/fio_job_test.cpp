#include "bench/fio/fio_job.hpp"

#include <gmock/gmock.h>
#include <algorithm>
#include <set>

namespace spark::bench {
namespace {

using testing::Contains;
using testing::Not;

const FioSetup kSetup{"fio", "io_uring", "/tmp/aux"};

TEST(Streams, OneFileIsSplitIntoPartsThatDoNotOverlap) {
  const auto streams = deal_streams({{"/data", 10 * kMiB + 5}}, 4, kMiB);
  ASSERT_EQ(streams.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(streams[i].offset, i * 2 * kMiB);
    EXPECT_EQ(streams[i].bytes, 2 * kMiB);
  }
}

TEST(Streams, ManyFilesAreAssignedWhole) {
  const auto streams = deal_streams({{"/a", kMiB}, {"/b", kMiB}, {"/c", kMiB}}, 2, kMiB);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_THAT(streams[0].files, testing::ElementsAre("/a", "/c"));
  EXPECT_EQ(streams[0].bytes, 0u);
}

TEST(Streams, ThreeFilesForFourStreamsShareTheFirst) {
  const auto streams = deal_streams({{"/a", 4 * kMiB}, {"/b", 3 * kMiB}, {"/c", 2 * kMiB}}, 4, kMiB);
  ASSERT_EQ(streams.size(), 4u);
  EXPECT_EQ(streams[0].bytes, 2 * kMiB);
  EXPECT_EQ(streams[1].bytes, 3 * kMiB);
  EXPECT_EQ(streams[3].files[0], "/a");
  EXPECT_EQ(streams[3].offset, 2 * kMiB);
}

TEST(Streams, FilesShorterThanABlockAreLeftOutAndASmallOneHasFewerStreams) {
  EXPECT_TRUE(deal_streams({{"/a", kMiB - 1}}, 4, kMiB).empty());
  EXPECT_TRUE(deal_streams({}, 1, 4096).empty());
  EXPECT_EQ(deal_streams({{"/a", 2 * kMiB}, {"/b", 5}}, 4, kMiB).size(), 2u);
}

const Scenario& scenario(const char* name) {
  return **find_scenario(name);
}

TEST(Command, AReadIsReadOnlyAndRequestsDirectIo) {
  const auto command =
      cell_command(kSetup, scenario("shards"), deal_streams({{"/mnt/a:b/data", 8 * kMiB}}, 4, kMiB),
                   {std::chrono::seconds(5), 0});
  for (const char* option :
       {"--readonly", "--direct=1", "--ioengine=io_uring", "--iodepth=8", "--bs=1048576", "--rw=read",
        "--runtime=5s", "--time_based", "--randrepeat=0", "--allow_file_create=0", "--thread",
        "--aux-path=/tmp/aux", "--filename=/mnt/a\\:b/data", "--name=stream3", "--offset=6291456"}) {
    EXPECT_THAT(command, Contains(option));
  }
}

// Reading again from the start would be served from the page cache of the first pass.
TEST(Command, AColdReadUsesThePageCacheAndReadsEachBlockOnce) {
  const auto command =
      cell_command(kSetup, scenario("samples"), deal_streams({{"/d", 8 * kMiB}}, 8, 128 * kKiB),
                   {std::chrono::seconds(5), 0});
  for (const char* option :
       {"--direct=0", "--invalidate=1", "--ioengine=psync", "--runtime=5s", "--rw=randread"}) {
    EXPECT_THAT(command, Contains(option));
  }
  EXPECT_THAT(command, Not(Contains("--time_based")));
}

TEST(Command, ARateIsSharedByTheStreams) {
  const auto command = cell_command(kSetup, scenario("demand"), deal_streams({{"/d", 8 * kMiB}}, 4, kMiB),
                                    {std::chrono::seconds(1), 400e6});
  EXPECT_THAT(command, Contains("--rate=100000000"));
}

TEST(Command, AWriteIsIncompressibleFlushedAndWithinTheFile) {
  const auto command = cell_command(kSetup, scenario("checkpoint"), deal_streams({{"/d", 8 * kMiB}}, 4, kMiB),
                                    {std::chrono::seconds(1), 0});
  EXPECT_THAT(command, Contains("--end_fsync=1"));
  EXPECT_THAT(command, Contains("--allow_file_create=0"));
  EXPECT_THAT(command, Contains("--size=2097152"));
  EXPECT_THAT(command, Not(Contains("--readonly")));
  const auto layout = layout_command(kSetup, {{"/d", 8 * kMiB}, {"/d1", 8 * kMiB}}, 5 * kMiB);
  EXPECT_EQ(std::count(layout.begin(), layout.end(), "--rate=5242880"), 1) << "--rate-limit holds here, too";
  EXPECT_THAT(layout, Contains("--refill_buffers=1"));
  EXPECT_THAT(layout, Contains("--filename=/d:/d1"));
  EXPECT_THAT(layout, Contains("--size=16777216"));
}

TEST(Command, TheJobFileMatchesTheCommandWithoutOurOutputOptions) {
  const std::string job = job_file(cell_command(
      kSetup, scenario("latency"), deal_streams({{"/d", 8 * kMiB}}, 1, 4096), {std::chrono::seconds(2), 0}));
  EXPECT_EQ(
      job,
      "[global]\nthread\ngroup_reporting\nlat_percentiles=1\nclat_percentiles=0\nverify_state_save=0\n"
      "randrepeat=0\ndirect=1\nioengine=io_uring\nrw=randread\nbs=4096\niodepth=1\ntime_based\nruntime=2s\n"
      "file_service_type=sequential\nallow_file_create=0\nreadonly\n[stream0]\nfilename=/d\n");
}

TEST(Command, PathsThatFioWouldTruncateAreRejected) {
  for (const char* path : {"/a#b", "/a;b", "/a\\b", "/a ", "/a\n", ""})
    EXPECT_FALSE(fio_filename(path)) << path;
  EXPECT_EQ(fio_filename("/a b,c'd:e"), "/a b,c'd\\:e");
}

TEST(Command, TheShellLineCanBePasted) {
  EXPECT_EQ(shell_line({"fio", "--a=1", "two words", "it's", ""}), "fio --a=1 'two words' 'it'\\''s' ''");
}

TEST(Streams, StartAtAnotherOffsetEachRoundWithinTheirPart) {
  const std::vector<DataFile> files = {{"/a", 64 * kMiB}, {"/b", 64 * kMiB}};
  std::set<Bytes> starts;
  for (unsigned round = 0; round <= 5; ++round) {
    std::vector<Stream> streams = deal_streams(files, 4, kMiB);
    const std::vector<Stream> whole = streams;
    start_elsewhere(streams, files, round, kMiB, {});
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(streams[i].offset % kMiB, 0u);
      EXPECT_GE(streams[i].offset, whole[i].offset);
      EXPECT_EQ(streams[i].offset + streams[i].bytes, whole[i].offset + whole[i].bytes);
      EXPECT_GE(2 * streams[i].bytes, whole[i].bytes);
    }
    starts.insert(streams[0].offset);
  }
  EXPECT_EQ(starts.size(), 6u);
}

TEST(Streams, EachOfSeveralHostsStartsElsewhereInTheSameRound) {
  const std::vector<DataFile> one = {{"/a", 64 * kMiB}};
  const std::vector<DataFile> many(4, {"/b", kMiB});
  for (unsigned round = 0; round <= 5; ++round) {
    std::set<Bytes> starts;
    for (unsigned host = 0; host < 4; ++host) {
      std::vector<Stream> streams = deal_streams(one, 1, kMiB);
      start_elsewhere(streams, one, round, kMiB, {host, 4});
      starts.insert(streams[0].offset);
      EXPECT_GE(streams[0].bytes, 32 * kMiB);
      EXPECT_EQ(streams[0].offset + streams[0].bytes, 64 * kMiB);
    }
    EXPECT_EQ(starts.size(), 4u) << round;
  }
  std::vector<Stream> first = {{{"/0", "/1", "/2", "/3"}}}, second = first;
  start_elsewhere(first, many, 1, kMiB, {0, 2});
  start_elsewhere(second, many, 1, kMiB, {1, 2});
  EXPECT_EQ(first[0].files.front(), "/1");
  EXPECT_EQ(second[0].files.front(), "/3");
}

}  // namespace
}  // namespace spark::bench
