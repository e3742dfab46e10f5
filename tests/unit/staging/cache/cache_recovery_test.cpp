// Effects of one bad entry, or of another running process, on the other datasets.
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <algorithm>

#include <thread>

#include "staging/copy/partial/partial_area.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class RecoveryTest : public CacheTest {
 protected:
  Result<Staged> stage(const std::string& dataset) {
    write_text(folder_ / ("source-" + dataset) / "f", "content of " + dataset);
    write_text(folder_ / ("source-" + dataset) / "g", "more");
    auto cache = open_cache_with(hooks_, config_, clock_);
    if (!cache) return cache.take_error();
    return (*cache)->stage({dataset, folder_ / ("source-" + dataset), {}}, options_, kQuiet, stop_);
  }
  std::map<std::string, DatasetRow> rows() {
    std::map<std::string, DatasetRow> all;
    const auto cache = open();
    const auto rows = cache ? cache->list() : Result<std::vector<DatasetRow>>();
    if (rows) {
      for (const DatasetRow& row : *rows) all[row.name] = row;
    }
    return all;
  }
};

// Like `chattr +i`.
class Immutable {
 public:
  explicit Immutable(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), is_set_(set(FS_IMMUTABLE_FL)) {}
  ~Immutable() { set(0); }
  bool is_set() const { return is_set_; }

 private:
  UniqueFd fd_;
  bool is_set_;
  bool set(int wanted) {
    int flags = 0;
    if (::ioctl(fd_.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = (flags & ~FS_IMMUTABLE_FL) | wanted;
    return ::ioctl(fd_.get(), FS_IOC_SETFLAGS, &flags) == 0;
  }
};

TEST_F(RecoveryTest, AnUndeletableFileAffectsOnlyItsDataset) {
  ASSERT_OK(stage("bad"));
  ASSERT_OK(stage("good"));
  const std::filesystem::path file = rows()["bad"].path / "f";
  {
    const Immutable kept(file);
    if (!kept.is_set()) SPARK_SKIP("no immutable files here, or not root");
    EXPECT_KIND(open()->evict("bad"), Errc::Refused);
    GenerationRow row;
    row.dataset = "bad";
    row.generation = 1;
    ASSERT_OK(catalog()->begin_eviction({row}, WallTime{}));  // as if it became undeletable meanwhile
    EXPECT_TRUE(open()) << "a cache with a bad entry opens";
    ASSERT_OK(stage("good"));
    ASSERT_OK(stage("other"));
    ASSERT_OK(open()->verify("good", {}, kQuiet, stop_));
    ASSERT_OK(open()->evict("other"));
    ASSERT_OK(open()->recover([] {}));
    const auto all = rows();
    EXPECT_EQ(all.at("good").trouble, "");
    ASSERT_TRUE(all.contains("bad")) << "what could not be deleted is listed";
    EXPECT_NE(all.at("bad").trouble.find("/f: Operation not permitted"), std::string::npos)
        << all.at("bad").trouble;
    int left = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(config_.path / ".trash"))
      left += entry.is_regular_file() ? 1 : 0;
    EXPECT_EQ(left, 1) << "all that can be deleted is";
  }
  ASSERT_OK((*open_cache_with(hooks_, config_, clock_))->evict("bad"));
  EXPECT_FALSE(rows().contains("bad"));
  EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".trash"));
}

TEST_F(RecoveryTest, AnUnlistableFolderAffectsOnlyItsDataset) {
  ASSERT_OK(stage("bad"));
  ASSERT_OK(stage("good"));
  const std::filesystem::path folder = config_.path / "data/bad", aside = folder_ / "aside";
  std::filesystem::rename(folder, aside);
  write_text(folder, "no folder");
  auto cache = open();
  ASSERT_TRUE(cache);
  ASSERT_OK(cache->recover([] {}));
  ASSERT_OK(stage("good"));
  EXPECT_NE(rows()["bad"].trouble, "");
  std::filesystem::remove(folder);
  std::filesystem::rename(aside, folder);
  ASSERT_OK(cache->recover([] {}));
  EXPECT_EQ(rows()["bad"].trouble, "");
  ASSERT_OK(cache->verify("bad", {}, kQuiet, stop_));
}

TEST_F(RecoveryTest, DatasetsThatNeedNoRecoveryAreNotLocked) {
  ASSERT_OK(stage("a"));
  const auto area = PartialArea::try_open(config_.path / ".partial/a");  // plays another process
  ASSERT_OK(area);
  ASSERT_OK(open()->recover([] {}));
  EXPECT_TRUE(rows().contains("a"));
  // Locking a folder creates and removes it, which would change the times of its parent.
  struct stat partials {
  }, later{};
  ASSERT_EQ(::stat((config_.path / ".partial").c_str(), &partials), 0);
  ASSERT_OK(stage("b"));
  ASSERT_EQ(::stat((config_.path / ".partial").c_str(), &partials), 0);
  ASSERT_OK(open()->recover([] {}));
  ASSERT_EQ(::stat((config_.path / ".partial").c_str(), &later), 0);
  EXPECT_EQ(partials.st_mtim.tv_nsec, later.st_mtim.tv_nsec);
  EXPECT_EQ(partials.st_mtim.tv_sec, later.st_mtim.tv_sec);
}

TEST_F(RecoveryTest, TrashOfAnEarlierVersionIsDeleted) {
  ASSERT_OK(stage("a"));
  write_text(config_.path / ".trash/gone.7/f", "x");
  ASSERT_OK(open()->recover([] {}));
  EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".trash"));
  EXPECT_TRUE(rows().contains("a"));
}

TEST_F(RecoveryTest, CopiesAreListedBeforeAnythingIsDeleted) {
  ASSERT_OK(stage("kept"));
  hooks_.step = [](const char* step) -> Result<> {
    return std::string(step) == "published" ? fail(Errc::Failed, "power cut") : Result<>();
  };
  EXPECT_FALSE(stage("new")) << "published, and not entered";
  hooks_.step = {};
  const std::filesystem::path evicted = config_.path / ".trash/gone.7/f";
  write_text(evicted, "x");
  const auto cache = open_cache_with(hooks_, config_, clock_);
  ASSERT_OK(cache);
  const auto is_listed = [&] {
    const auto rows = (*cache)->list();
    return rows && std::ranges::count(*rows, "new", &DatasetRow::name) == 1;
  };
  EXPECT_FALSE(is_listed());
  int looked_over = 0;
  ASSERT_OK((*cache)->recover([&] {
    ++looked_over;
    EXPECT_TRUE(is_listed());
    EXPECT_TRUE(std::filesystem::exists(config_.path / "new"));
    EXPECT_TRUE(std::filesystem::exists(evicted));
  }));
  EXPECT_EQ(looked_over, 1);
  EXPECT_FALSE(std::filesystem::exists(evicted));
}

TEST_F(RecoveryTest, AnUndeletablePartialCopyIsNotRetriedIndefinitely) {
  ASSERT_OK(stage("a"));
  write_text(config_.path / ".partial/bad/data/f", noise(100'000, 1));
  const Immutable kept(config_.path / ".partial/bad/data/f");
  if (!kept.is_set()) SPARK_SKIP("no immutable files here, or not root");
  config_.capacity = open()->usage()->used + 4096;
  ASSERT_OK(stage("b"));
  const auto troubles = catalog()->troubles();
  ASSERT_OK(troubles);
  ASSERT_TRUE(troubles->contains("bad"));
  EXPECT_NE(troubles->at("bad").find("/f: Operation not permitted"), std::string::npos);
  EXPECT_FALSE(rows().contains("a")) << "it made way when the other could not";
}

// Its volume is in no configuration any more, so only this name evicts it.
TEST_F(RecoveryTest, ATroubleIsListedWithTheNameOfItsDataset) {
  ASSERT_OK(stage("a"));
  ASSERT_OK(catalog()->set_trouble("volume%3aset%2ftrain", "it can't be deleted"));
  const auto cache = open_cache_with(hooks_, config_, clock_);
  ASSERT_OK(cache);
  const auto listed = (*cache)->list();
  ASSERT_OK(listed);
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ(listed->back().name, "volume:set/train");
}

// As in a cache that was moved, before the catalog was lost and its numbers began again.
TEST_F(RecoveryTest, AFolderOfTheSameNumberWithAnotherContentIsNotThatGeneration) {
  const std::filesystem::path copies = config_.path / "data", aside = folder_ / "aside";
  ASSERT_OK(stage("a"));
  const std::string first = rows()["a"].hash;
  std::filesystem::rename(copies, aside);
  std::filesystem::remove_all(config_.state_dir);
  write_text(folder_ / "source-a/later", "later");
  ASSERT_OK(stage("a"));
  const std::string second = rows()["a"].hash;
  ASSERT_NE(first, second);
  std::filesystem::remove_all(copies);
  std::filesystem::rename(aside, copies);
  ASSERT_OK(open()->recover([] {}));
  EXPECT_EQ(rows()["a"].hash, first) << "the generation in the folder";
  EXPECT_TRUE(std::filesystem::exists(rows()["a"].path / "f"));
  ASSERT_OK(open()->verify("a", {}, kQuiet, stop_));
  const auto again = stage("a");
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Copied);
  EXPECT_EQ(read_text(again->path / "later"), "later");
}

TEST_F(RecoveryTest, ACopyOfAnotherCatalogIsNotDeletedByAnEvictionThatWasInterrupted) {
  const std::filesystem::path copies = config_.path / "data", aside = folder_ / "aside";
  ASSERT_OK(stage("a"));
  std::filesystem::rename(copies, aside);
  std::filesystem::remove_all(config_.state_dir);
  write_text(folder_ / "source-a/later", "later");
  ASSERT_OK(stage("a"));
  std::filesystem::remove_all(copies);
  std::filesystem::rename(aside, copies);
  GenerationRow row;
  row.dataset = "a";
  row.generation = 1;
  ASSERT_OK(catalog()->begin_eviction({row}, WallTime{}));
  ASSERT_OK(open()->recover([] {}));
  ASSERT_TRUE(rows().contains("a"));
  EXPECT_TRUE(std::filesystem::exists(rows()["a"].path / "f"));
}

// Holds a dataset's lock for 300 ms, like a recovery.
class BriefLock {
 public:
  explicit BriefLock(const std::filesystem::path& folder) : area_(PartialArea::try_open(folder)) {
    waiter_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      area_ = fail(Errc::Failed, "released");
    });
  }
  ~BriefLock() { waiter_.join(); }

 private:
  Result<PartialArea> area_;
  std::thread waiter_;
};

TEST_F(RecoveryTest, AnEvictionWaitsForABriefLockOfTheDataset) {
  ASSERT_OK(stage("a"));
  const BriefLock lock(config_.path / ".partial/a");
  ASSERT_OK(open()->evict("a"));
}

TEST_F(RecoveryTest, ACopyWaitsForABriefLockOfAVictim) {
  ASSERT_OK(stage("a"));
  config_.capacity = open()->usage()->used + 4096;
  const BriefLock lock(config_.path / ".partial/a");
  const auto staged = stage("b");
  ASSERT_OK(staged);
  ASSERT_EQ(staged->evicted.size(), 1U);
  EXPECT_EQ(staged->evicted[0].dataset, "a");
}

}  // namespace
}  // namespace spark::staging
