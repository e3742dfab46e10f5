// The space that a copy needs and an eviction frees, calculated before anything is written or deleted.
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>

#include "staging/cache/cache_store.hpp"
#include "tests/unit/staging/cache/room_fixture.hpp"
#include "tests/unit/staging/file_attributes.hpp"

namespace spark::staging {
namespace {

using namespace test;

// A file that a job has mapped.
class Mapped {
 public:
  explicit Mapped(const std::filesystem::path& file) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    bytes_ = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd.get(), 0);
    EXPECT_NE(bytes_, MAP_FAILED);
  }
  ~Mapped() { unmap(); }
  void unmap() {
    if (bytes_ != MAP_FAILED) ::munmap(bytes_, kSize);
    bytes_ = MAP_FAILED;
  }

 private:
  static constexpr std::size_t kSize = 4096;
  void* bytes_ = MAP_FAILED;
};

// Generations share 3 MB, and each has 1 MB of its own.
class SharedSpaceTest : public RoomTest {
 protected:
  void SetUp() override {
    source_ = make("set", kMB);
    write_text(source_.path / "shared", noise(3 * kMB, 7));
    for (std::uint64_t generation = 1; generation <= 3; ++generation) {
      write_text(source_.path / "f", noise(kMB, 10 + generation));
      ASSERT_OK(stage(source_));
      if (generation == 3) break;
      Lease lease;
      lease.id = std::to_string(generation);
      lease.dataset = "set";
      lease.generation = generation;
      ASSERT_OK(catalog()->add_lease(lease));
    }
  }
  double used() { return static_cast<double>(open()->usage()->used) / static_cast<double>(kMB); }
};

TEST_F(SharedSpaceTest, CountsOnceAlsoInARebuiltCatalog) {
  EXPECT_NEAR(used(), 6, 0.1);
  for (const char* name : {"catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"})
    std::filesystem::remove(config_.state_dir / name);
  EXPECT_NEAR(used(), 6, 0.1);
}

TEST_F(SharedSpaceTest, StaysCountedWhenTheNewestGenerationIsDeleted) {
  CacheStore store(CacheFolder(config_.path), catalog(), clock_, {});
  ASSERT_OK(store.check_identity(config_.state_dir));
  const auto rows = store.ready_generations("set");
  ASSERT_OK(rows);
  ASSERT_OK(store.delete_marked({rows->front()}));
  EXPECT_NEAR(used(), 5, 0.1);
}

class OpenFilesTest : public SmallDriveTest {
 protected:
  std::optional<SmallTmpfs> drive_;

  void SetUp() override {
    SmallDriveTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directories(config_.path);
    drive_.emplace(config_.path, "size=10m");
    ASSERT_OK(stage("busy", 4 * kMB));
    ASSERT_OK(stage("idle", 4 * kMB));
    set_cost("busy", 1, std::chrono::hours(100));
    set_cost("idle", 1000, std::chrono::hours(0));
  }
};

TEST_F(OpenFilesTest, ACopyWithMappedFilesIsNotChosenForEviction) {
  const Mapped job(config_.path / "busy/f");
  const auto staged = stage("next", 4 * kMB);
  ASSERT_OK(staged);
  ASSERT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(staged->evicted[0].dataset, "idle");
  EXPECT_EQ(there(), (Names{"busy", "next"}));
}

TEST_F(OpenFilesTest, NothingIsDeletedWhenOpenFilesKeepTheSpace) {
  const Mapped job(config_.path / "busy/f");
  hooks_.room.obstacle = std::chrono::milliseconds(50);
  const auto refused = stage("next", 9 * kMB);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("busy 4.01 MB (its file f is open)"), std::string::npos)
      << refused.error().what;
  EXPECT_EQ(there(), (Names{"busy", "idle"}));
}

TEST_F(OpenFilesTest, ACopyWaitsUntilTheFilesAreClosedAndReportsIt) {
  Mapped job(config_.path / "busy/f");
  std::atomic<bool> was_said{false};
  const ProgressSink sink = [&](const CopyProgress& progress) {
    if (progress.reason.find("busy") == std::string::npos) return;
    was_said = true;
    job.unmap();
  };
  const auto cache = open();
  const auto staged = cache->stage(make("next", 9 * kMB), options_, sink, stop_);
  ASSERT_OK(staged);
  EXPECT_TRUE(was_said);
  EXPECT_EQ(there(), Names{"next"});
}

TEST_F(OpenFilesTest, AFileHardLinkedElsewhereDoesNotCountAsFreeable) {
  std::filesystem::create_hard_link(config_.path / "busy/f", config_.path / "kept");
  const auto refused = stage("next", 9 * kMB);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_EQ(there(), (Names{"busy", "idle"}));
}

class CompressedSourceTest : public SmallDriveTest {
 protected:
  std::optional<SmallTmpfs> source_drive_, drive_;

  void SetUp() override {
    SmallDriveTest::SetUp();
    if (IsSkipped()) return;
    source_drive_.emplace(folder_ / "source-set", "size=40m");
    // Its files report an eighth of their size as allocated, like on ZFS.
    struct stat drive {};
    ASSERT_EQ(::stat((folder_ / "source-set").c_str(), &drive), 0);
    file_attributes().on_fstat = [drive](struct stat& info) {
      if (info.st_dev == drive.st_dev && S_ISREG(info.st_mode)) info.st_blocks /= 8;
    };
    file_attributes().on_statx = [drive](int, const char*, int, struct statx& info) {
      const bool is_there = ::makedev(info.stx_dev_major, info.stx_dev_minor) == drive.st_dev;
      if (is_there && S_ISREG(info.stx_mode)) info.stx_blocks /= 8;
    };
  }
  void TearDown() override { file_attributes() = {}; }
  const Source set_{"set", folder_ / "source-set", {}, {}, 0};
};

TEST_F(CompressedSourceTest, ItsUncompressedSizeIsReserved) {
  write_text(set_.path / "f", noise(4 * kMB, 1));
  std::filesystem::create_directories(config_.path);
  drive_.emplace(config_.path, "size=3m");
  const auto refused = stage(set_);
  EXPECT_KIND(refused, Errc::NoSpace);
  EXPECT_NE(refused.error().what.find("it needs 4.0"), std::string::npos) << refused.error().what;
  EXPECT_FALSE(std::filesystem::exists(config_.path / ".partial/set")) << "before the first byte";
}

TEST_F(CompressedSourceTest, ItsCopyCountsWithItsUncompressedSize) {
  for (int i = 0; i < 8; ++i) write_text(set_.path / std::to_string(i), noise(500'000, 2));
  config_.capacity = 10 * kMB;
  ASSERT_OK(stage(set_));
  EXPECT_GE(open()->usage()->used, 4 * kMB);
  EXPECT_LE(open()->usage()->used, 4 * kMB + 100'000);
}

TEST_F(CompressedSourceTest, HolesThatTheCopyKeepsAreNotCounted) {
  for (const char* name : {"large", "small"}) {
    const std::filesystem::path file = set_.path / name;
    write_text(file, noise(100'000, 3));
    std::filesystem::resize_file(file, name == std::string("large") ? 20 * kMB : 900'000);
  }
  config_.capacity = 10 * kMB;
  const auto staged = stage(set_);
  ASSERT_OK(staged);
  EXPECT_LT(allocated(staged->path / "large"), kMB);
  EXPECT_LT(allocated(staged->path / "small"), 200'000U);
  EXPECT_GE(open()->usage()->used, 200'000U);
  EXPECT_LT(open()->usage()->used, 300'000U);
}

TEST_F(RoomTest, ASupersededGenerationMakesRoomBeforeACurrentCopy) {
  ASSERT_OK(stage("a", 3 * kMB));
  lease("a", 1);
  write_text(folder_ / "source-a/f", noise(3 * kMB, 9));
  ASSERT_OK(stage(Source{"a", folder_ / "source-a", {}, {}, 0}));
  ASSERT_EQ(catalog()->generations()->size(), 2u);
  ASSERT_OK(catalog()->remove_lease("l-a"));
  config_.capacity = 8 * kMB;
  ASSERT_OK(stage("b", 3 * kMB));
  EXPECT_EQ(there(), (Names{"a", "b"}));
  EXPECT_EQ(catalog()->generations()->size(), 2u);
}

}  // namespace
}  // namespace spark::staging
