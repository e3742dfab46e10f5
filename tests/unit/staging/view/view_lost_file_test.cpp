// A view of a copy, one of whose files can't be copied.
#include <filesystem>
#include <functional>
#include <set>

#include "tests/unit/staging/view/view_copy_fixture.hpp"

namespace spark::staging::test {
namespace {

using Outcome = ViewRead::Outcome;

// The staging fails all the same, once the others are there.
TEST_F(ViewCopyTest, AFileThatIsDeletedOrReplacedFailsAloneAndTheCopyAtItsEnd) {
  options_.threads = options_.depth = 1;
  const std::filesystem::path lost = source_ / "b/lost";
  const std::vector<std::function<void()>> ways{[&] { std::filesystem::remove(lost); },
                                                [&] { std::filesystem::remove_all(source_ / "b"); },
                                                [&] {
                                                  std::filesystem::remove(lost);
                                                  std::filesystem::create_directory(lost);
                                                },
                                                [&] {
                                                  std::filesystem::remove(lost);
                                                  std::filesystem::create_symlink("../c", lost);
                                                }};
  for (const auto& lose : ways) {
    std::filesystem::remove_all(source_);
    std::filesystem::remove_all(folder_ / ".copy.spark-partial");
    map_.reset();
    ViewMap::remove(place_);
    write_text(source_ / "a", noise(20 * kMiB, 1));
    write_text(lost, noise(9 * kMiB, 2));
    write_text(source_ / "c", noise(9 * kMiB, 3));
    bool is_lost = false;
    hooks_.before_read = [&](const std::string& path, Bytes) {
      if (path == "a" && !std::exchange(is_lost, true)) lose();
    };
    const auto report = copy_now();
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().what.find("b/lost"), std::string::npos) << report.error().message();
    EXPECT_FALSE(std::filesystem::exists(copy_));
    const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
    EXPECT_EQ(reader_->read({find(*tree_, "b/lost"), 0, 10}, buffer).outcome, Outcome::Failed);
    EXPECT_EQ(whole("a"), noise(20 * kMiB, 1));
    EXPECT_EQ(whole("c"), noise(9 * kMiB, 3)) << "it comes after the lost file";
  }
}

TEST_F(ViewCopyTest, AFileThatKeepsChangingFailsAloneAndTheCopyAtItsEnd) {
  options_.threads = options_.depth = 1;
  write_text(source_ / "changes", noise(9 * kMiB, 1));
  write_text(source_ / "stays", noise(9 * kMiB, 2));
  unsigned changed = 0;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (path == "changes" && offset == 0) write_text(source_ / "changes", noise(9 * kMiB, ++changed + 2));
  };
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("3 times"), std::string::npos) << report.error().message();
  EXPECT_EQ(changed, 3U);
  const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
  EXPECT_EQ(reader_->read({find(*tree_, "changes"), 0, 10}, buffer).outcome, Outcome::Failed);
  EXPECT_EQ(whole("stays"), noise(9 * kMiB, 2));
}

// For `ls`: the daemon that was told may have ended.
TEST_F(ViewCopyTest, TheNextAttemptSaysWhichFileHasFailed) {
  write_text(source_ / "a", noise(9 * kMiB, 1));
  for (const char* name : {"b", "c"}) write_text(source_ / name, name);
  hooks_.before_read = [&](const std::string&, Bytes) { stop_ = true; };
  EXPECT_KIND(copy_now(), Errc::Cancelled);
  for (const char* name : {"b", "c"})
    map_->withdraw({tree_->node(find(*tree_, name)).first_unit, 1}, UnitState::Failed);
  hooks_.before_read = {};
  stop_ = false;
  std::vector<std::string> said;
  ViewReports reports;
  reports.begun = [this](Bytes, std::uint64_t) { begun(); };
  reports.had_failed = [&](const std::string& why) { said.push_back(why); };
  CopyViewer viewer(place_, "faces", folder_ / ".copy.spark-partial/data", {}, std::move(reports));
  options_.viewer = &viewer;
  ASSERT_OK(copy_with(hooks_, source_, copy_, options_, kQuiet, stop_));
  EXPECT_EQ(
      said,
      (std::vector<std::string>{"b: it has changed or was deleted since the view began, or has an ACL"}));
}

// Nobody waits for the others.
TEST_F(ViewCopyTest, WithoutReadersADeletedFileEndsTheCopyAtOnce) {
  options_.threads = options_.depth = 1;
  for (const char* name : {"a", "b", "c"}) write_text(source_ / name, noise(9 * kMiB, 1));
  std::set<std::string> read;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (read.insert(path).second && path == "a") std::filesystem::remove(source_ / "b");
  };
  EXPECT_FALSE(copy_with(hooks_, source_, copy_, options_, kQuiet, stop_));
  EXPECT_EQ(read, std::set<std::string>{"a"});
}

}  // namespace
}  // namespace spark::staging::test
