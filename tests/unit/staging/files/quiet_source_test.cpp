#include <chrono>

#include "staging/copy/copy_with.hpp"
#include "staging/files/quiet_source.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class QuietSourceTest : public CopyTest {
 protected:
  QuietSourceTest() {
    options_.needs_quiet_source = true;
    write_text(source_ / "large", noise(20'000'000, 1));
    write_text(source_ / "small", "x");
  }
  // Runs `change` once while the large file is read.
  Result<CopyReport> copy_while(const std::function<void()>& change) {
    CopyHooks hooks;
    bool changed = false;
    hooks.before_read = [&](const std::string& path, Bytes offset) {
      if (path != "large" || offset == 0 || changed) return;
      changed = true;
      change();
    };
    options_.threads = 1;
    options_.depth = 1;
    options_.chunk = kMiB;
    return copy_with(hooks, source_, copy_, options_, kQuiet, stop_);
  }
  void expect_not_published(const Result<CopyReport>& report) {
    EXPECT_KIND(report, Errc::Mismatch);
    EXPECT_FALSE(std::filesystem::exists(copy_));
  }
};

TEST_F(QuietSourceTest, AnUnchangedSourceIsPublished) {
  ASSERT_OK(copy_while([] {}));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(QuietSourceTest, ASourceWithAnAddedFileIsNotPublished) {
  expect_not_published(copy_while([&] { write_text(source_ / "late", "y"); }));
}

TEST_F(QuietSourceTest, ASourceWithARemovedFileIsNotPublished) {
  expect_not_published(copy_while([&] { std::filesystem::remove(source_ / "small"); }));
}

TEST_F(QuietSourceTest, ASourceWithAReplacedFileIsNotPublished) {
  expect_not_published(copy_while([&] {
    write_text(source_ / "new", "z");
    std::filesystem::rename(source_ / "new", source_ / "small");
  }));
}

// Of a request that version 0.2 has recorded.
TEST_F(QuietSourceTest, ASourceIsKnownAlsoByItsLastChange) {
  options_.complete_state = totals_of(source_).changed_ns;
  ASSERT_OK(copy_with({}, source_, copy_, options_, kQuiet, stop_));
  write_text(source_ / "small", "y");
  EXPECT_KIND(copy_with({}, source_, copy_, options_, kQuiet, stop_), Errc::Mismatch);
}

TEST_F(QuietSourceTest, ASourceThatChangedSinceItWasFoundCompleteReplacesNoEarlierCopy) {
  options_.complete_state = totals_of(source_).written;
  ASSERT_OK(copy_while([] {}));
  // An explicit time, since a change within the same tick of the clock may leave all times as they are.
  write_text(source_ / "small", "torn");
  std::filesystem::last_write_time(source_ / "small",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  const auto report = copy_while([] {});
  EXPECT_KIND(report, Errc::Mismatch);
  EXPECT_EQ(read_text(copy_ / "small"), "x");
  options_.complete_state = totals_of(source_).written;
  ASSERT_OK(copy_while([] {}));
  EXPECT_EQ(read_text(copy_ / "small"), "torn") << "complete again";
}

TEST_F(QuietSourceTest, TheNextAttemptSendsTheChangedSource) {
  expect_not_published(copy_while([&] { write_text(source_ / "late", "y"); }));
  ASSERT_OK(copy_while([] {}));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

}  // namespace
}  // namespace spark::staging
