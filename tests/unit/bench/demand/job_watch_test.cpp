#include "bench/demand/job_watch.hpp"

#include <gmock/gmock.h>

namespace spark::bench {
namespace {

using testing::HasSubstr;

// A process that has a file of the dataset open.
ProcessReads reader(pid_t parent, Bytes called, Bytes from_storage = 0) {
  return {parent, called, from_storage, {{1, 3, "/data/file", 100'000, 0}}, {}, "worker", false};
}

ProcessReads other(pid_t parent, Bytes called) {
  return {parent, called, 0, {}, {}, "other", false};
}

TEST(JobWatch, TheRateSpansTheFirstToTheLastReadOfData) {
  JobWatch watch({"/data"});
  watch.look(0, {{1, other(0, 900'000'000)}});  // imports
  for (int second = 10; second <= 20; ++second) {
    const Bytes data = static_cast<Bytes>(second - 10) * 50'000'000;
    watch.look(second, {{1, other(0, 900'000'000)}, {2, reader(1, 1000 + data)}});
  }
  for (int second = 21; second < 30; ++second) {
    watch.look(second,
               {{1, other(0, 900'000'000)}, {2, reader(1, 1000 + 500'000'000)}});  // writes its results
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_NEAR(reads->rate.value, 50e6, 1);
  EXPECT_EQ(reads->seconds, 10);
  EXPECT_EQ(reads->before, 10);
  EXPECT_EQ(reads->bytes, 500'000'000u);
  EXPECT_EQ(reads->mean_file, 100'000u);
  EXPECT_NEAR(reads->rate.range.low, 50e6, 1);
}

TEST(JobWatch, NamesTheFoldersThatTheJobReadFrom) {
  JobWatch watch({"/data", "/dataset", "/maps"});
  for (int second = 0; second <= 10; ++second) {
    ProcessReads reads = reader(0, static_cast<Bytes>(second) * 1000);
    reads.mapped = {{"/maps/index", 4096}, {"/lib/libc.so", kMiB}};
    watch.look(second, {{1, reads}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_THAT(reads->folders, testing::ElementsAre("/data", "/maps"));
}

TEST(JobWatch, AnEndedWorkersBytesAreNotCountedAgainInItsParent) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    const Bytes data = static_cast<Bytes>(second) * 10'000'000;
    watch.look(second, {{1, reader(0, 5'000)}, {2, reader(1, data)}});
  }
  // The kernel added the worker's 100 MB to its parent's counter; a new worker continues.
  for (int second = 11; second <= 20; ++second) {
    const Bytes data = static_cast<Bytes>(second - 10) * 10'000'000;
    watch.look(second, {{1, reader(0, 5'000 + 100'000'000)}, {3, reader(1, data)}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_EQ(reads->bytes, 200'000'000u);
  EXPECT_NEAR(reads->rate.value, 10e6, 1);
}

TEST(JobWatch, AProcessThatReadsNoDataIsNotCounted) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    const auto at = static_cast<Bytes>(second);
    // The parent reads all of the worker's data through a pipe.
    watch.look(second, {{1, other(0, at * 10'000'000)}, {2, reader(1, at * 10'000'000)}});
  }
  EXPECT_NEAR(watch.result()->rate.value, 10e6, 1);
}

TEST(JobWatch, AWorkerNeverSeenWithAFileCountsLikeItsSiblings) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    const auto at = static_cast<Bytes>(second);
    ProcessReads unseen = reader(1, at * 10'000'000);
    unseen.files.clear();
    watch.look(second, {{1, other(0, 0)}, {2, reader(1, at * 10'000'000)}, {3, unseen}});
  }
  EXPECT_NEAR(watch.result()->rate.value, 20e6, 1);
}

TEST(JobWatch, ReadsBeforeAFileWasSeenCountFromTheFirstReadOfData) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    const auto at = static_cast<Bytes>(second);
    ProcessReads late = reader(1, 700'000'000 + at * 10'000'000);
    late.name = "late";
    if (second < 5) late.files.clear();
    watch.look(second, {{1, other(0, 0)}, {2, reader(1, at * 10'000'000)}, {3, late}});
  }
  EXPECT_EQ(watch.result()->bytes, 200'000'000u);
}

TEST(JobWatch, MappedFilesAreCountedAtTheStorage) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    ProcessReads reads{0,        100,  static_cast<Bytes>(second) * 30'000'000, {}, {{"/data/a.arrow", kGiB}},
                       "python", false};
    watch.look(second, {{1, reads}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_TRUE(reads->counted_at_storage);
  EXPECT_NEAR(reads->rate.value, 30e6, 1);
}

// Without a dataset too: reads of 7.7 MB/s by calls, and 30 MB/s in all.
TEST(JobWatch, AJobThatCallsAndMapsIsCountedAtTheStorage) {
  JobWatch watch({});
  for (int second = 0; second <= 10; ++second) {
    const auto at = static_cast<Bytes>(second);
    ProcessReads reads = reader(0, at * 7'700'000, at * 30'000'000);
    reads.mapped = {{"/home/a/data.bin", kGiB}};
    watch.look(second, {{1, reads}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_TRUE(reads->counted_at_storage);
  EXPECT_NEAR(reads->rate.value, 30e6, 1);
}

TEST(JobWatch, AsynchronousReadsAreCountedAtTheStorage) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    ProcessReads reads = reader(0, 100, static_cast<Bytes>(second) * 30'000'000);
    reads.is_asynchronous = true;
    watch.look(second, {{1, reads}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_TRUE(reads->counted_at_storage);
  EXPECT_NEAR(reads->rate.value, 30e6, 1);
}

// Read by the job with O_DIRECT, they pass no page cache.
TEST(JobWatch, DirectAsynchronousReadsAreAllCounted) {
  for (const bool is_direct : {true, false}) {
    JobWatch watch({"/data"});
    for (int second = 0; second <= 10; ++second) {
      ProcessReads reads = reader(0, 100, static_cast<Bytes>(second) * 30'000'000);
      reads.files.front().is_direct = is_direct;
      reads.is_asynchronous = true;
      watch.look(second, {{1, reads}});
    }
    const auto reads = watch.result();
    ASSERT_TRUE(reads) << reads.error().message();
    EXPECT_TRUE(reads->counted_at_storage);
    EXPECT_EQ(reads->may_lack_reads, !is_direct);
    EXPECT_NEAR(reads->rate.value, 30e6, 1);
  }
}

// One epoch of 3 GB at 300 MB/s; then the page cache has all of it, and storage gives a page now and then.
TEST(JobWatch, EpochsFromThePageCacheDoNotLowerTheRate) {
  for (const int second_of_cache : {10, 3}) {
    JobWatch watch({"/data"});
    for (int second = 0; second <= 60; ++second) {
      const auto read = static_cast<Bytes>(std::min(second, second_of_cache)) * 300'000'000;
      ProcessReads reads = reader(0, 100, read + static_cast<Bytes>(second) * 4096);
      reads.mapped = {{"/data/a.arrow", kGiB}};
      watch.look(second, {{1, reads}});
    }
    const auto reads = watch.result();
    if (second_of_cache == 10) {
      ASSERT_TRUE(reads) << reads.error().message();
      EXPECT_NEAR(reads->rate.value, 300e6, 1e6);
    } else {
      ASSERT_FALSE(reads);
      EXPECT_THAT(reads.error().message(), HasSubstr("larger dataset"));
    }
  }
}

// Such jobs "consumed 8 B/s".
TEST(JobWatch, MappedFilesInThePageCacheCantBeCounted) {
  for (const bool is_mapped : {true, false}) {
    JobWatch watch({"/data"});
    for (int second = 0; second <= 10; ++second) {
      ProcessReads reads = reader(0, static_cast<Bytes>(second) * 8, 0);
      if (is_mapped) reads.mapped = {{"/data/a.arrow", kGiB}};
      reads.is_asynchronous = !is_mapped;
      watch.look(second, {{1, reads}});
    }
    const auto reads = watch.result();
    ASSERT_FALSE(reads);
    EXPECT_THAT(reads.error().message(), HasSubstr(is_mapped ? "maps its files" : "io_uring"));
    EXPECT_THAT(reads.error().message(), HasSubstr("page cache"));
  }
}

TEST(JobWatch, AMappedIndexIsNoReasonToRefuseButIsNamed) {
  JobWatch watch({"/data"});
  for (int second = 0; second <= 10; ++second) {
    ProcessReads reads = reader(0, static_cast<Bytes>(second) * 10'000'000);
    reads.mapped = {{"/data/index", kMiB}};
    watch.look(second, {{1, reads}});
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_FALSE(reads->counted_at_storage);
  EXPECT_TRUE(reads->may_lack_reads);
}

TEST(JobWatch, AnUnsteadyJobHasAWideInterval) {
  JobWatch watch({"/data"});
  Bytes data = 0;
  for (int second = 0; second <= 20; ++second) {
    watch.look(second, {{1, reader(0, data)}});
    data += second % 4 < 2 ? 100'000'000 : 0;
  }
  const auto reads = watch.result();
  ASSERT_TRUE(reads) << reads.error().message();
  EXPECT_LT(reads->rate.range.low, 0.9 * reads->rate.value);
  EXPECT_GT(reads->rate.range.high, 1.1 * reads->rate.value);
}

TEST(JobWatch, TooFewReadsGiveNoResult) {
  JobWatch none({"/data"});
  none.look(0, {{1, other(0, 5)}});
  EXPECT_THAT(none.result().error().message(), HasSubstr("not seen to read a file of the dataset"));
  JobWatch brief({"/data"});
  for (int second = 0; second < 4; ++second) brief.look(second, {{1, reader(0, static_cast<Bytes>(second))}});
  EXPECT_THAT(brief.result().error().message(), HasSubstr("less than 5 s"));
}

}  // namespace
}  // namespace spark::bench
