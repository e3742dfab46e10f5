// A destination that has a copy already.
#include <gmock/gmock.h>

#include "staging/copy/copy_with.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(CopyTest, AnEarlierCopyIsReplacedWhenTheSourceChanged) {
  write_text(source_ / "f", "one");
  write_text(source_ / "gone", "x");
  ASSERT_OK(copy_now());
  write_text(source_ / "f", "two!");
  std::filesystem::remove(source_ / "gone");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_FALSE(report->unchanged);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  EXPECT_FALSE(has_partial());
}

TEST_F(CopyTest, AModifiedCopyIsNotReplaced) {
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(copy_ / "notes", "work");
  write_text(source_ / "f", "two!");
  EXPECT_KIND(copy_now(), Errc::Refused);
  EXPECT_EQ(read_text(copy_ / "notes"), "work");
}

// Changes a byte, and neither the size nor the times.
void corrupt(const std::filesystem::path& file) {
  const auto time = std::filesystem::last_write_time(file);
  std::string text = read_text(file);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  write_text(file, text);
  std::filesystem::last_write_time(file, time);
}

TEST_F(CopyTest, AVerifiedCopyReplacesADamagedOne) {
  write_text(source_ / "f", noise(100'000, 1));
  ASSERT_OK(copy_now());
  corrupt(copy_ / "f");
  options_.verify = true;
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_FALSE(again->unchanged);
  EXPECT_EQ(again->warnings.size(), 1u);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  ASSERT_TRUE(copy_now()->unchanged);
}

// As after a restore that keeps no links: nothing but reading it proves its content.
TEST_F(CopyTest, AFurtherNameThatBecameAFileOfItsOwnIsReadToo) {
  write_text(source_ / "a", noise(100'000, 1));
  std::filesystem::create_hard_link(source_ / "a", source_ / "b");
  ASSERT_OK(copy_now());
  const auto time = std::filesystem::last_write_time(copy_ / "b");
  const auto become = [&](const std::string& content) {
    std::filesystem::remove(copy_ / "b");
    write_text(copy_ / "b", content);
    std::filesystem::permissions(copy_ / "b", std::filesystem::status(copy_ / "a").permissions());
    std::filesystem::last_write_time(copy_ / "b", time);
  };
  options_.verify = true;
  become(noise(100'000, 1));
  const auto restored = copy_now();
  ASSERT_OK(restored);
  EXPECT_TRUE(restored->unchanged);
  become(noise(100'000, 2));
  const auto damaged = copy_now();
  ASSERT_OK(damaged);
  EXPECT_FALSE(damaged->unchanged);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, AVerifiedCopySharesNoDamagedFile) {
  write_text(source_ / "f", noise(100'000, 1));
  write_text(source_ / "g", "one");
  ASSERT_OK(copy_now());
  corrupt(copy_ / "f");
  write_text(source_ / "g", "two!");
  options_.verify = true;
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_EQ(again->warnings.size(), 1u);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

// As an NFS server does.
TEST_F(CopyTest, AnEarlierCopyWithOtherTimesIsRecognizedAndItsTimesRestored) {
  options_.earlier.times = FileTimes::Ignored;
  write_text(source_ / "folder/f", "one");
  ASSERT_OK(copy_now());
  std::filesystem::last_write_time(copy_ / "folder/f", std::filesystem::file_time_type::clock::now());
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  std::filesystem::last_write_time(copy_ / "folder/f", std::filesystem::file_time_type::clock::now());
  write_text(source_ / "folder/f", "two");
  const auto changed = copy_now();
  ASSERT_OK(changed);
  EXPECT_EQ(changed->bytes, 3u);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(CopyTest, TwoStepReplacementCompletesAfterAnInterruption) {
  options_.earlier.replaced_in_two_steps = true;
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(source_ / "f", "two");
  CopyHooks hooks;
  hooks.step = [](std::string_view step) -> Result<> {
    if (step != "aside") return {};
    return fail(Errc::Failed, "interrupted");
  };
  EXPECT_FALSE(copy_with(hooks, source_, copy_, options_, kQuiet, stop_));
  EXPECT_FALSE(std::filesystem::exists(copy_));
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  EXPECT_FALSE(has_partial());
  write_text(source_ / "f", "three");
  ASSERT_OK(copy_now());
  EXPECT_EQ(read_text(copy_ / "f"), "three");
  EXPECT_FALSE(has_partial());
}

TEST_F(CopyTest, AnEarlierCopyWithOtherTimesAndOtherContentIsNotReplaced) {
  options_.earlier.times = FileTimes::Ignored;
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(copy_ / "f", "own");
  write_text(source_ / "f", "two");
  const auto refused = copy_now();
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("f has other content"), std::string::npos) << refused.error().what;
  EXPECT_EQ(read_text(copy_ / "f"), "own");
}

TEST_F(CopyTest, AForeignFolderInPlaceOfAnEarlierCopyIsRefused) {
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  std::filesystem::remove_all(copy_);
  write_text(copy_ / "f", "one");
  EXPECT_KIND(copy_now(), Errc::Refused);
}

// An output or a shard is what it is: only `stage` and `copy` of a person ask whether it is the same place.
TEST_F(CopyTest, ASourceThatBecameEmptyIsRefusedOnlyIfItsPlaceIsToBeKept) {
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  std::filesystem::remove(source_ / "f");
  options_.replaces = Replaces::SameSource;
  EXPECT_KIND(copy_now(), Errc::Refused);
  options_.replaces = Replaces::Anything;
  ASSERT_OK(copy_now());
  EXPECT_FALSE(std::filesystem::exists(copy_ / "f"));
}

TEST_F(CopyTest, ACopyOfAnotherSourceIsReplacedOnlyIfThatIsAccepted) {
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(folder_ / "other/f", "two");
  options_.replaces = Replaces::SameSource;
  const auto refused = copy(folder_ / "other", copy_, options_, kQuiet, stop_);
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_THAT(refused.error().what, testing::HasSubstr(source_.native()));
  EXPECT_EQ(read_text(copy_ / "f"), "one");
  options_.replaces = Replaces::Anything;
  ASSERT_OK(copy(folder_ / "other", copy_, options_, kQuiet, stop_));
  EXPECT_EQ(read_text(copy_ / "f"), "two");
}

TEST_F(CopyTest, ACopyOfSymbolicLinksAloneIsKeptAsOneOfFiles) {
  std::filesystem::create_directories(source_ / "2026-01");
  std::filesystem::create_directories(source_ / "2026-02");
  std::filesystem::create_symlink("2026-01", source_ / "newest");
  options_.replaces = Replaces::SameSource;
  ASSERT_OK(copy_now());
  write_text(folder_ / "other/f", "two");
  write_text(folder_ / "file", "three");
  EXPECT_KIND(copy(folder_ / "other", copy_, options_, kQuiet, stop_), Errc::Refused);
  EXPECT_KIND(copy(folder_ / "file", copy_, options_, kQuiet, stop_), Errc::Refused);
  std::filesystem::remove(source_ / "newest");
  EXPECT_KIND(copy_now(), Errc::Refused) << "it has become empty";
  EXPECT_TRUE(std::filesystem::is_symlink(copy_ / "newest"));
  std::filesystem::create_symlink("2026-02", source_ / "newest");
  ASSERT_OK(copy_now());
  EXPECT_EQ(std::filesystem::read_symlink(copy_ / "newest"), "2026-02");
}

TEST_F(CopyTest, AFolderIsNotReplacedByAFileNorTheReverseWhereTheTypeStays) {
  write_text(source_ / "f", "one");
  ASSERT_OK(copy_now());
  write_text(folder_ / "file", "two");
  options_.replaces = Replaces::SameType;
  EXPECT_KIND(copy(folder_ / "file", copy_, options_, kQuiet, stop_), Errc::Refused);
  EXPECT_EQ(read_text(copy_ / "f"), "one");
  write_text(folder_ / "folder/f", "three");
  ASSERT_OK(copy(folder_ / "folder", copy_, options_, kQuiet, stop_));
  EXPECT_EQ(read_text(copy_ / "f"), "three");
  ASSERT_OK(copy(folder_ / "file", folder_ / "single", options_, kQuiet, stop_));
  EXPECT_KIND(copy(folder_ / "folder", folder_ / "single", options_, kQuiet, stop_), Errc::Refused);
}

}  // namespace
}  // namespace spark::staging
