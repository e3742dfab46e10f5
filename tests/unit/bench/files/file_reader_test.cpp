#include "bench/files/file_reader.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

// The first page of the file is in the page cache.
bool is_page_cached(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  unsigned char resident = 0;
  EXPECT_EQ(::mincore(page, 4096, &resident), 0) << path;
  ::munmap(page, 4096);
  ::close(file);
  return (resident & 1) != 0;
}

TEST(FileReader, ReadsEveryFileOnceAPass) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", std::vector<Bytes>(20, 8192), 0));
  FileReading reading;
  reading.files = small_file_names(disk / "small", 20);
  reading.threads = 4;
  std::atomic<std::uint64_t> progress = 0;
  reading.progress = &progress;
  const auto read = read_files(reading);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->ios, 20u);
  EXPECT_EQ(read->bytes, 20 * 8192u);
  EXPECT_EQ(progress, 20 * 8192u);
  EXPECT_EQ(sample_count(read->bins), 20u);
  EXPECT_GT(read->seconds, 0);
}

TEST(FileReader, RepeatsPassesUntilItHasReadLongEnough) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", std::vector<Bytes>(4, 4096), 0));
  FileReading reading;
  reading.files = small_file_names(disk / "small", 4);
  reading.at_least = Duration(1000);  // longer than a pass takes on the busiest machine
  const auto read = read_files(reading);
  ASSERT_TRUE(read);
  EXPECT_GE(read->seconds, 1);
  EXPECT_EQ(read->ios % 4, 0u);
  EXPECT_GT(read->ios, 4u);
}

TEST(FileReader, APassStartsAtTheGivenFileAndWrapsAround) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", {1000, 2000, 3000, 4000, 5000}, 0));
  FileReading reading;
  reading.files = small_file_names(disk / "small", 5);
  reading.first = 3;
  reading.pass = 3;  // the last two, and the first again
  const auto read = read_files(reading);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bytes, 4000u + 5000u + 1000u);
}

TEST(FileReader, ReturnsDelegationsBySettingTheUnchangedMode) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", {1000}, 0));
  fs::permissions(disk / "small/0", fs::perms::owner_read | fs::perms::others_read);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat((disk / "small/0").c_str(), &before), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  FileReading reading;
  reading.files = {disk / "small/0"};
  reading.delegations = Delegations::GiveBack;
  ASSERT_TRUE(read_files(reading));
  ASSERT_EQ(::stat((disk / "small/0").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_NE(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec) << "the mode was not set";
}

TEST(FileReader, ChangesNoMetadataUnlessItReturnsDelegations) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", {1000}, 0));
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat((disk / "small/0").c_str(), &before), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (const Delegations delegations : {Delegations::None, Delegations::Avoid}) {
    FileReading reading;
    reading.files = {disk / "small/0"};
    reading.delegations = delegations;
    ASSERT_TRUE(read_files(reading));
  }
  ASSERT_EQ(::stat((disk / "small/0").c_str(), &after), 0);
  EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

// Opening a file on NFS before its first read may get its delegation, which a dataset's file must not have.
TEST(FileReader, ANewFileOfADatasetIsEvictedOnlyIfItMayBeCached) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", {8192}, 0));
  FileReading reading;
  reading.files = {disk / "small/0"};
  reading.delegations = Delegations::Avoid;
  for (const bool may_be_cached : {true, false}) {
    ASSERT_FALSE(read_text(disk / "small/0").empty());
    ASSERT_TRUE(is_page_cached(disk / "small/0"));
    reading.may_be_cached = may_be_cached;
    std::vector<bool> seen;
    reading.opens_sent = [&] {
      seen.push_back(is_page_cached(disk / "small/0"));
      return std::optional<std::uint64_t>(0);
    };
    ASSERT_TRUE(read_files(reading));
    ASSERT_EQ(seen.size(), 3u) << "at the start, before the pass and after it";
    EXPECT_EQ(seen[1], !may_be_cached);
  }
}

TEST(FileReader, CountsOpensWithoutThoseThatDropThePageCache) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", {1000, 1000}, 0));
  FileReading reading;
  reading.files = small_file_names(disk / "small", 2);
  std::uint64_t sent = 100;
  reading.opens_sent = [&] { return std::optional(sent += 7); };
  const auto read = read_files(reading);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->opens, 7u);
  reading.opens_sent = [] { return std::nullopt; };
  EXPECT_EQ(read_files(reading)->opens, std::nullopt);
  reading.opens_sent = nullptr;
  EXPECT_EQ(read_files(reading)->opens, std::nullopt);
}

TEST(FileReader, IsNeverFasterThanItsRate) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", std::vector<Bytes>(10, 100'000), 0));
  FileReading reading;
  reading.files = small_file_names(disk / "small", 10);
  reading.threads = 2;
  reading.rate = 5'000'000;
  EXPECT_GE(read_files(reading)->seconds, 0.15);  // 0.2 s minus the initial burst
}

TEST(FileReader, SmallFilesAreNotAlike) {
  const DiskFolder disk;
  ASSERT_TRUE(make_small_files(disk / "small", std::vector<Bytes>(2, 4096), 0));
  const std::string one = read_text(disk / "small/0");
  EXPECT_NE(one, read_text(disk / "small/1"));
  EXPECT_NE(one.substr(0, 512), one.substr(512, 512));
}

TEST(FileReader, AFileThatIsGoneIsNamed) {
  const DiskFolder disk;
  FileReading reading;
  reading.files = {disk / "gone"};
  const auto read = read_files(reading);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Errc::NotFound);
  EXPECT_THAT(read.error().message(), testing::HasSubstr("gone"));
  reading.delegations = Delegations::Avoid;
  reading.may_be_cached = false;  // nothing opens it before it is read
  EXPECT_FALSE(read_files(reading));
}

TEST(FileReader, ALinkIsNotFollowed) {
  const DiskFolder disk;
  write_text(disk / "secret", "precious");
  fs::create_symlink(disk / "secret", disk / "link");
  FileReading reading;
  reading.files = {disk / "link"};
  reading.delegations = Delegations::Avoid;
  reading.may_be_cached = false;  // nothing opens it before it is read
  EXPECT_FALSE(read_files(reading));
}

}  // namespace
}  // namespace spark::bench
