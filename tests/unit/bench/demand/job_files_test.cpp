#include "bench/demand/job_files.hpp"

#include <gtest/gtest.h>

namespace spark::bench {
namespace {

ProcessReads at(const std::string& path, Bytes size, Bytes position) {
  ProcessReads reads;
  reads.files = {{7, 3, path, size, position}};
  return reads;
}

TEST(JobFiles, OnlyFilesBelowTheDatasetCount) {
  JobFiles files({"/data/set"});
  EXPECT_TRUE(files.see(at("/data/set/a", 100, 0), 0));
  EXPECT_TRUE(files.see(at("/data/set/b", 300, 0), 0));
  EXPECT_FALSE(files.see(at("/data/settings", 100, 0), 0));
  EXPECT_FALSE(files.see(at("/usr/lib/python3/x.py", 100, 0), 0));
  EXPECT_EQ(files.count(), 2u);
  EXPECT_EQ(files.mean_size(), 200u);
}

TEST(JobFiles, WithoutADatasetTheSystemsFilesAreLeftOut) {
  JobFiles files({});
  EXPECT_TRUE(files.see(at("/home/a/set", 100, 0), 0));
  EXPECT_FALSE(files.see(at("/usr/lib/libc.so", 100, 0), 0));
}

TEST(JobFiles, AMappedFileCountsAsDataAndIsReported) {
  JobFiles files({"/data"});
  ProcessReads reads;
  reads.mapped = {{"/usr/lib/libc.so", kMiB}, {"/data/a.arrow", 4096}};
  EXPECT_TRUE(files.see(reads, 0));
  EXPECT_EQ(files.mapped_bytes(), 4096u);
}

TEST(JobFiles, ALargeFileReadFromEndToEndIsSequential) {
  JobFiles files({});
  for (Bytes position = 0; position < 10 * kMiB; position += kMiB) {
    files.see(at("/data/shard.tar", kGiB, position), kMiB);
  }
  EXPECT_EQ(files.order(), ReadOrder::Sequential);
}

TEST(JobFiles, JumpsBeyondTheBytesReadMeanRandomOrder) {
  JobFiles files({});
  for (const Bytes place : {9, 2, 700, 41, 300, 5, 811, 77, 400, 3}) {
    files.see(at("/data/big.bin", kGiB, place * kMiB + 1), 128 * kKiB);
  }
  EXPECT_EQ(files.order(), ReadOrder::Random);
}

TEST(JobFiles, SmallFilesAndReusedDescriptorsLeaveTheOrderUnknown) {
  JobFiles files({});
  for (int i = 0; i < 20; ++i) files.see(at("/data/" + std::to_string(i), kGiB, 5 * kMiB + 1), kMiB);
  EXPECT_EQ(files.order(), ReadOrder::Unknown);
  for (int i = 0; i < 20; ++i) files.see(at("/data/small", 100'000, static_cast<Bytes>(i)), kMiB);
  EXPECT_EQ(files.order(), ReadOrder::Unknown) << "files below 1 MiB are read whole";
}

}  // namespace
}  // namespace spark::bench
