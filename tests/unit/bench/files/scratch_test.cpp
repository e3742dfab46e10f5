#include "bench/files/scratch.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <ctime>

#include "tests/support/skip.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

Owner dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  Owner owner = this_process(::time(nullptr) + 3600);
  ::waitpid(pid, nullptr, 0);
  owner.pid = pid;
  return owner;
}

TEST(Scratch, AFolderOfARunningBenchmarkIsKept) {
  const DiskFolder disk;
  const std::string folder = disk / new_scratch_name();
  ASSERT_TRUE(make_scratch(folder, this_process(0)));
  const auto said = sweep_leftovers(disk.path(), ::time(nullptr));
  EXPECT_TRUE(fs::exists(folder));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("left alone"), std::string::npos);
}

TEST(Scratch, AFolderOfAKilledRunIsRemovedWithItsData) {
  const DiskFolder disk;
  const std::string folder = disk / new_scratch_name();
  ASSERT_TRUE(make_scratch(folder, dead_process()));
  write_text(folder + "/" + kScratchData, "left behind");
  fs::create_directories(folder + "/" + kScratchStaged + "/.copy.spark-partial");
  fs::create_directory(folder + "/" + kScratchSmall);
  write_text(folder + "/" + kScratchSmall + "/0", "left behind");
  fs::create_symlink(disk / "foreign", folder + "/" + kScratchSmall + "/1");
  write_text(disk / "foreign", "precious");
  EXPECT_EQ(sweep_leftovers(disk.path(), ::time(nullptr)).size(), 1u);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(read_text(disk / "foreign"), "precious");
}

// That user could rename it meanwhile, and put a link to another folder in its place.
TEST(Scratch, ALeftoverOfAnotherUserIsKept) {
  if (::geteuid() != 0) SPARK_SKIP("only root gives folders to another user");
  const DiskFolder disk;
  const std::string folder = disk / new_scratch_name();
  ASSERT_TRUE(make_scratch(folder, dead_process()));
  ASSERT_EQ(::chown(folder.c_str(), 4903, 4903), 0);
  EXPECT_TRUE(sweep_leftovers(disk.path(), ::time(nullptr)).empty());
  EXPECT_FALSE(remove_scratch(folder));
  EXPECT_TRUE(fs::exists(folder + "/" + kScratchMarker));
}

// In a folder without the sticky bit others rename what they may not delete.
TEST(Scratch, AnotherFolderThatGotTheNameIsKept) {
  const DiskFolder disk;
  const fs::path folder = disk / new_scratch_name(), empty = disk / new_scratch_name();
  fs::create_directories(folder / "staged");
  fs::create_directories(empty);
  std::ofstream(folder / "data") << "x";
  EXPECT_EQ(sweep_leftovers(disk.path(), ::time(nullptr) + 7200).size(), 2U);
  EXPECT_TRUE(fs::exists(folder / "data"));
  EXPECT_TRUE(fs::exists(folder / "staged"));
  EXPECT_FALSE(fs::exists(empty));
}

TEST(Scratch, ARecycledProcessIdIsNotItsOwner) {
  Owner owner = this_process(::time(nullptr) + 3600);
  EXPECT_FALSE(is_over(owner, ::time(nullptr)));
  owner.start_ticks += 1;
  EXPECT_TRUE(is_over(owner, ::time(nullptr)));
}

TEST(Scratch, ARunOfAnotherHostOrContainerEndsWhenItExpires) {
  Owner owner = this_process(1000);
  owner.boot_id = "another";
  EXPECT_FALSE(is_over(owner, 999));
  EXPECT_TRUE(is_over(owner, 1001));
  owner = this_process(1000);
  owner.pid_namespace = "pid:[1]";
  EXPECT_FALSE(is_over(owner, 999));
}

TEST(Scratch, AForeignFileInALeftoverIsKeptAndReported) {
  const DiskFolder disk;
  const std::string folder = disk / new_scratch_name();
  ASSERT_TRUE(make_scratch(folder, dead_process()));
  write_text(folder + "/thesis.tex", "precious");
  const auto said = sweep_leftovers(disk.path(), ::time(nullptr));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("not the benchmark's"), std::string::npos);
  EXPECT_EQ(read_text(folder + "/thesis.tex"), "precious");
}

TEST(Scratch, SymlinksFilesAndFreshUnmarkedFoldersAreKept) {
  const DiskFolder disk;
  fs::create_directory(disk / "elsewhere");
  write_text(disk / "elsewhere/data", "precious");
  fs::create_directory_symlink(disk / "elsewhere", disk / ".spark-stage-bench-link");
  write_text(disk / ".spark-stage-bench-file", "precious");
  fs::create_directory(disk / ".spark-stage-bench-new");
  sweep_leftovers(disk.path(), ::time(nullptr));
  EXPECT_TRUE(fs::exists(disk / "elsewhere/data"));
  EXPECT_TRUE(fs::exists(disk / ".spark-stage-bench-link"));
  EXPECT_TRUE(fs::exists(disk / ".spark-stage-bench-file"));
  EXPECT_TRUE(fs::exists(disk / ".spark-stage-bench-new"));
  sweep_leftovers(disk.path(), ::time(nullptr) + 3600);
  EXPECT_FALSE(fs::exists(disk / ".spark-stage-bench-new")) << "empty, unmarked and an hour old";
}

TEST(Scratch, APlantedMarkerNeitherBlocksNorIsFollowed) {
  const DiskFolder disk;
  write_text(disk / "secret", "precious");
  for (const char* name : {"fifo", "link"}) fs::create_directory(disk / (std::string(kScratchPrefix) + name));
  ASSERT_EQ(::mkfifo((disk / ".spark-stage-bench-fifo/owner.json").c_str(), 0600), 0);
  fs::create_symlink(disk / "secret", disk / ".spark-stage-bench-link/owner.json");
  sweep_leftovers(disk.path(), ::time(nullptr));
  EXPECT_EQ(std::distance(fs::directory_iterator(disk.path()), {}), 3);
  sweep_leftovers(disk.path(), ::time(nullptr) + 3600);
  EXPECT_EQ(read_text(disk / "secret"), "precious");
}

TEST(Scratch, RemovingAMissingFolderSucceeds) {
  const DiskFolder disk;
  EXPECT_TRUE(remove_scratch(disk / "absent"));
}

}  // namespace
}  // namespace spark::bench
