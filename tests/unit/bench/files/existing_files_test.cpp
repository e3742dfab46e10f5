#include "bench/files/existing_files.hpp"

#include <unistd.h>

#include <map>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

void write_bytes(const std::string& path, std::size_t bytes) {
  write_text(path, std::string(bytes, 'x'));
}

TEST(ExistingFiles, TheLargestAreTakenFromAllFolders) {
  const DiskFolder disk;
  fs::create_directories(disk / "a/b");
  write_bytes(disk / "small", 100);
  write_bytes(disk / "a/large", 300'000);
  write_bytes(disk / "a/b/larger", 400'000);
  write_bytes(disk / "medium", 200'000);
  WalkLimits limits;
  limits.files = 2;
  const FoundFiles found = find_files(disk.path(), limits);
  ASSERT_EQ(found.files.size(), 2u);
  EXPECT_EQ(found.files[0].path, disk / "a/b/larger");
  EXPECT_EQ(found.files[1].path, disk / "a/large");
  EXPECT_EQ(found.bytes, 700'000u);
  EXPECT_TRUE(found.complete);
}

TEST(ExistingFiles, ASizeLimitSelectsSmallFilesAndAllFilesAreCounted) {
  const DiskFolder disk;
  write_bytes(disk / "tiny", 100);
  write_bytes(disk / "small", 5'000);
  write_bytes(disk / "large", 300'000);
  WalkLimits limits;
  limits.at_most = 10'000;
  const FoundFiles found = find_files(disk.path(), limits);
  ASSERT_EQ(found.files.size(), 1u);
  EXPECT_EQ(found.files[0].path, disk / "small");
  EXPECT_EQ(found.all_files, 3u);
  EXPECT_EQ(found.all_bytes, 305'100u);
}

TEST(ExistingFiles, SymlinksSparseFilesAndUnusableNamesAreSkipped) {
  const DiskFolder disk;
  const DiskFolder outside;
  write_bytes(outside / "secret", 500'000);
  fs::create_directory_symlink(outside.path(), disk / "folder-link");
  fs::create_symlink(outside / "secret", disk / "file-link");
  write_text(disk / "sparse", "");
  ASSERT_EQ(::truncate((disk / "sparse").c_str(), 1 << 20), 0);
  write_bytes(disk / "cut#short", 100'000);
  fs::create_directory(disk / ".spark-stage-bench-other");
  write_bytes(disk / ".spark-stage-bench-other/data", 100'000);
  const FoundFiles found = find_files(disk.path(), {});
  EXPECT_TRUE(found.files.empty());
  EXPECT_EQ(found.sparse, 1u);
}

TEST(ExistingFiles, TheWalkEndsAtItsLimits) {
  const DiskFolder disk;
  for (int i = 0; i < 20; ++i) write_bytes(disk / ("f" + std::to_string(i)), 5000);
  WalkLimits limits;
  limits.entries = 10;
  const FoundFiles few = find_files(disk.path(), limits);
  EXPECT_FALSE(few.complete);
  EXPECT_EQ(few.entries, 10u);
  fs::create_directories(disk / "1/2/3");
  write_bytes(disk / "1/2/3/deep", 900'000);
  limits = {};
  limits.depth = 2;
  const FoundFiles shallow = find_files(disk.path(), limits);
  EXPECT_FALSE(shallow.complete);
  EXPECT_EQ(shallow.bytes, 20 * 5000u);
}

TEST(ExistingFiles, AnAbsentFolderHasNone) {
  EXPECT_TRUE(find_files("/nonexistent", {}).files.empty());
}

TEST(ExistingFiles, ASampleHasFilesOfAllSizesAndIsReproducibleBySeed) {
  const DiskFolder disk;
  fs::create_directory(disk / "small");
  for (int i = 0; i < 200; ++i)
    write_text(disk / ("small/" + std::to_string(i)), std::string(1 + i * 10, 'x'));
  WalkLimits limits;
  limits.files = 50;
  limits.at_least = 1;
  limits.sample = 7;
  const FoundFiles found = find_files(disk.path(), limits);
  ASSERT_EQ(found.files.size(), 50u);
  EXPECT_LT(found.bytes / 50, 1400u) << "the largest 50 would have 1,750 on average";
  EXPECT_GT(found.bytes / 50, 600u);
  EXPECT_EQ(find_files(disk.path(), limits).files.front().path, found.files.front().path);
}

TEST(ExistingFiles, ListsTheFoldersSmallEnoughToCopy) {
  const DiskFolder disk;
  for (const char* name : {"a", "b", "c"}) fs::create_directories(disk / ("classes/" + std::string(name)));
  write_text(disk / "classes/a/1", std::string(3000, 'x'));
  write_text(disk / "classes/b/1", std::string(5000, 'x'));
  write_text(disk / "classes/c/1", std::string(90'000, 'x'));
  WalkLimits limits;
  limits.folder_at_most = 50'000;
  std::map<std::string, Bytes> found;
  for (const DataFile& folder : find_files(disk.path(), limits).folders) found[folder.path] = folder.bytes;
  EXPECT_EQ(found, (std::map<std::string, Bytes>{{disk / "classes/a", 3000}, {disk / "classes/b", 5000}}));
}

}  // namespace
}  // namespace spark::bench
