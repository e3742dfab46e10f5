// The memory that copies hold in the page cache.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "staging/cache/memory/copy_memory.hpp"
#include "staging/cache/memory/host_memory.hpp"
#include "staging/files/io/page_cache.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

constexpr Bytes kSize = 4 * kMiB;

class MemoryTest : public CopyTest {
 protected:
  void SetUp() override {
    struct statfs info {};
    ASSERT_EQ(::statfs(folder_.path().c_str(), &info), 0);
    if (info.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a tmpfs is the page cache; set TMPDIR";
  }

  CopyMemory copied() {
    EXPECT_TRUE(copy_now());
    auto memory = CopyMemory::open({folder_.path(), "copy"});
    EXPECT_TRUE(memory);
    return std::move(*memory);
  }
  CopyMemory with_two_files() {
    for (const char* name : {"a", "b"}) write_text(source_ / name, noise(kSize, name[0]));
    return copied();
  }
  UniqueFd open_copy(const std::string& name) const {
    return UniqueFd(::open((copy_ / name).c_str(), O_RDONLY | O_CLOEXEC));
  }
  UniqueFd read_all(const std::string& name) const {
    EXPECT_FALSE(read_text(copy_ / name).empty());
    return open_copy(name);
  }
  Bytes held(const std::string& name) const {
    return cached_bytes(open_copy(name).get(), std::filesystem::file_size(copy_ / name));
  }
  CopyMemory::Look look(CopyMemory& memory, bool frees, bool keeps_rest = false) {
    return memory.look({clock_, frees, [=] { return keeps_rest; }});
  }

  SystemClock clock_;
};

TEST_F(MemoryTest, OfACopyIsCounted) {
  CopyMemory memory = with_two_files();
  EXPECT_EQ(look(memory, false).held, 0U);
  read_all("a");
  EXPECT_EQ(look(memory, false).held, kSize);
  read_all("b");
  const auto both = look(memory, false);
  EXPECT_EQ(both.held, 2 * kSize);
  EXPECT_FALSE(both.is_estimate);
  EXPECT_EQ(look(memory, false).held, 2 * kSize) << "nothing is freed if that is not asked for";
}

TEST_F(MemoryTest, IsFreedByTheSecondLookAfterTheReaderHasClosedTheFile) {
  CopyMemory memory = with_two_files();
  UniqueFd reader = read_all("a");
  EXPECT_EQ(look(memory, true).freed, 0U);
  EXPECT_EQ(look(memory, true).freed, 0U) << "it has it open";
  reader.reset();
  const auto freed = look(memory, true);
  EXPECT_EQ(freed.freed, kSize);
  EXPECT_EQ(freed.held, 0U);
  EXPECT_EQ(held("a"), 0U);
  read_all("a");
  EXPECT_EQ(look(memory, true).freed, 0U) << "it was read since the last look";
  EXPECT_EQ(look(memory, true).freed, kSize);
}

TEST_F(MemoryTest, OfOneFileIsFreedWhileAnotherIsRead) {
  CopyMemory memory = with_two_files();
  const UniqueFd reader = read_all("a");
  read_all("b");
  look(memory, true);
  EXPECT_EQ(look(memory, true).freed, kSize);
  EXPECT_EQ(held("a"), kSize);
  EXPECT_EQ(held("b"), 0U);
}

TEST_F(MemoryTest, IsDroppedWhileAReaderHasTheFileOpenButNotWhileItIsMapped) {
  CopyMemory memory = with_two_files();
  UniqueFd reader = read_all("a");
  EXPECT_EQ(memory.drop(stop_), kSize);
  void* const map = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED | MAP_POPULATE, reader.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  reader.reset();
  EXPECT_EQ(memory.drop(stop_), 0U);
  look(memory, true);
  EXPECT_EQ(look(memory, true).held, kSize);
  ::munmap(map, kSize);
  EXPECT_EQ(memory.drop(stop_), kSize);
}

// The largest files are known one by one; of the others a sample tells.
TEST_F(MemoryTest, OfManySmallFilesIsEstimatedAndStaysWhileTheCopyIsLeased) {
  constexpr Bytes kSmall = 128 * kKiB;
  constexpr std::size_t kRest = 300;
  for (std::size_t i = 0; i < kMostKnownFiles + kRest; ++i) {
    const bool is_small = i < kRest;
    const auto path = source_ / (is_small ? "small" : "large") / std::to_string(i);
    write_text(path, "");
    std::filesystem::resize_file(path, kSmall + (is_small ? 0 : 4 * kKiB));
  }
  CopyMemory memory = copied();
  for (std::size_t i = 0; i < kRest; ++i) read_all("small/" + std::to_string(i));
  // A kernel short of memory takes a few of these pages itself.
  constexpr Bytes kAll = kRest * kSmall;
  constexpr Bytes kMost = kAll - kAll / 100;
  const auto found = look(memory, true, true);
  EXPECT_GE(found.held, kMost);
  EXPECT_LE(found.held, kAll);
  EXPECT_TRUE(found.is_estimate);
  EXPECT_EQ(look(memory, true, true).freed, 0U) << "it is leased";
  const auto freed = look(memory, true, false);
  EXPECT_GE(freed.freed, kMost);
  EXPECT_LE(freed.held, kAll / 100);
  EXPECT_EQ(held("small/0"), 0U);
  read_all("small/7");
  EXPECT_EQ(memory.drop(stop_), kSmall);
}

TEST_F(MemoryTest, IsKnownWithoutCachestat) {
  with_two_files();
  const UniqueFd file = read_all("a");
  EXPECT_EQ(cached_bytes_by_mincore(file.get(), kSize), kSize);
  drop_pages(file.get(), 0, kSize / 2);
  EXPECT_EQ(cached_bytes_by_mincore(file.get(), kSize), kSize / 2);
  const auto large = folder_ / "large";
  write_text(large, "");
  constexpr Bytes kLarge = 130 * kMiB + 5;
  std::filesystem::resize_file(large, kLarge);
  const UniqueFd fd(::open(large.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(cached_bytes_by_mincore(fd.get(), kLarge), 0U);
  EXPECT_FALSE(read_text(large).empty());
  // A kernel short of memory takes a few of these pages itself.
  for (const Bytes cached : {cached_bytes_by_mincore(fd.get(), kLarge), cached_bytes(fd.get(), kLarge)}) {
    EXPECT_GE(cached, kLarge - kLarge / 50);
    EXPECT_LE(cached, kLarge);
  }
}

TEST(HostMemory, IsSharedWithAGpuByTheDriversNameOrTheProducts) {
  TempFolder folder;
  const SystemRoot root{folder.path()};
  write_text(folder / "proc/meminfo", "MemTotal: 100 kB\nCached: 60 kB\nSwapCached: 7 kB\nShmem:  20 kB\n");
  EXPECT_EQ(page_cache_of_host(root), 40 * kKiB);
  EXPECT_FALSE(gpu_shares_memory(root));
  write_text(folder / "proc/driver/nvidia/gpus/000f:01:00.0/information", "Model: \t\t NVIDIA H100\n");
  EXPECT_FALSE(gpu_shares_memory(root));
  write_text(folder / "proc/driver/nvidia/gpus/000f:01:00.0/information", "Model: \t\t NVIDIA GB10\n");
  EXPECT_TRUE(gpu_shares_memory(root));
  std::filesystem::remove_all(folder / "proc/driver");
  write_text(folder / "sys/class/dmi/id/product_name", "NVIDIA_DGX_Spark\n");
  EXPECT_TRUE(gpu_shares_memory(root));
}

}  // namespace
}  // namespace spark::staging
