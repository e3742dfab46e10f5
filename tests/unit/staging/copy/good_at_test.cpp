// The time of the last verification of each file: files carried over between generations keep theirs.
#include "staging/manifest/manifest_reader.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
using std::chrono::hours;

class SetClock final : public Clock {
 public:
  WallTime wall() const override { return now; }
  SteadyTime steady() const override { return SteadyTime(now.time_since_epoch()); }
  WallTime now{std::chrono::seconds(1'700'000'000)};
};

class GoodAtTest : public CacheTest {
 protected:
  GoodAtTest() {
    write_text(source_.path / "old", noise(5'000, 1));
    write_text(source_.path / "large", noise(3'000'000, 1));
    stage_again("changes", 0);
  }
  std::unique_ptr<Cache> open_now() {
    auto cache = open_cache_with(hooks_, config_, now_);
    EXPECT_TRUE((*cache)->recover([] {}));  // as in the daemon at its start
    return std::move(*cache);
  }
  // Stages again a week later, after the file has changed.
  void stage_again(const std::string& changed, std::uint64_t seed) {
    write_text(source_.path / changed, noise(5'000, seed + 10));
    const auto staged = open_now()->stage(source_, options_, kQuiet, stop_);
    ASSERT_OK(staged);
    EXPECT_EQ(staged->served_from, ServedFrom::Copied);
    path_ = staged->path;
    now_.now += hours(24 * 7);
  }
  WallTime good_at() { return open_now()->list()->front().good_at; }

  SetClock now_;
  const WallTime first_ = now_.now;
  std::filesystem::path path_;
};

TEST_F(GoodAtTest, ADatasetStagedWeeklyIsAsOldAsItsOldestFile) {
  EXPECT_EQ(good_at(), first_);
  for (std::uint64_t week = 1; week <= 5; ++week) stage_again("changes", week);
  EXPECT_EQ(good_at(), first_) << "'old' and 'large' were not looked at for six weeks";
}

TEST_F(GoodAtTest, AVerificationCoversFilesReusedLater) {
  const WallTime verified = now_.now;
  ASSERT_OK(open_now()->verify("set", options_, kQuiet, stop_));
  EXPECT_EQ(good_at(), verified);
  now_.now += hours(24);
  stage_again("changes", 1);
  stage_again("changes", 2);
  EXPECT_EQ(good_at(), verified);
}

TEST_F(GoodAtTest, WhenTheOldestFileChangesTheNextOldestCounts) {
  const WallTime second = now_.now;
  stage_again("changes", 1);
  const WallTime third = now_.now;
  write_text(source_.path / "large", noise(3'000'000, 2));
  stage_again("old", 1);
  EXPECT_EQ(good_at(), second) << "of 'changes', as it was staged then";
  stage_again("changes", 2);
  EXPECT_EQ(good_at(), third);
}

TEST_F(GoodAtTest, ARebuiltCatalogHasTheTimesOfTheManifests) {
  stage_again("changes", 1);
  std::filesystem::remove_all(config_.state_dir);
  EXPECT_EQ(good_at(), first_);
}

TEST_F(GoodAtTest, AManifestWithoutTimesIsAsOldAsItsGeneration) {
  const auto manifest = Destination{path_.parent_path(), path_.filename()}.manifest();
  auto content = parse_manifest(read_text(manifest));
  ASSERT_OK(content);
  for (Entry& entry : content->entries) entry.good_at = 0;
  ASSERT_OK(write_manifest(manifest, *content));
  EXPECT_EQ(read_text(manifest).find("good_at"), std::string::npos) << "as version 0.1 wrote it";
  stage_again("changes", 1);
  EXPECT_EQ(good_at(), first_);
}

TEST_F(GoodAtTest, ResumedFilesAreAsOldAsTheInterruptedCopy) {
  std::filesystem::remove_all(config_.path);
  std::filesystem::remove_all(config_.state_dir);
  const WallTime began = now_.now;
  options_.threads = 1;
  hooks_.step = [](const char* step) -> Result<> {
    if (std::string_view(step) == "manifest") return fail(Errc::Failed, "interrupted");
    return {};
  };
  EXPECT_FALSE(open_now()->stage(source_, options_, kQuiet, stop_));
  hooks_ = {};
  now_.now += hours(24 * 7);
  ASSERT_OK(open_now()->stage(source_, options_, kQuiet, stop_));
  EXPECT_EQ(good_at(), began);
}

// If jobs may write to a copy, a file shared by two generations would change in both.
TEST_F(GoodAtTest, GenerationsShareNoWritableFile) {
  const auto inode = [&](const char* file) {
    struct stat info {};
    EXPECT_EQ(::stat((path_ / file).c_str(), &info), 0);
    return info.st_ino;
  };
  const auto before = inode("old");
  stage_again("changes", 1);
  const auto shared = inode("old");
  config_.served_read_only = false;
  stage_again("changes", 2);
  EXPECT_EQ(shared, before);
  EXPECT_NE(inode("old"), before);
}

}  // namespace
}  // namespace spark::staging
