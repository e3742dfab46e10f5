// Copying with no or too few additional threads, like under a job's limit on processes.
#include <gmock/gmock.h>
#include "tests/support/failing_allocation.hpp"
#include "tests/support/thread_limit.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class CopyThreads : public CopyTest, public testing::WithParamInterface<int> {
 protected:
  // Small files in several folders, and large ones of several pieces.
  CopyThreads() {
    for (int i = 0; i < 300; ++i) {
      write_text(source_ / std::to_string(i % 7) / std::to_string(i),
                 noise(1000 + static_cast<std::size_t>(i), 1));
    }
    for (int i = 0; i < 3; ++i) {
      write_text(source_ / ("large" + std::to_string(i)), noise(20'000'000, static_cast<unsigned>(i)));
    }
  }
};

TEST_P(CopyThreads, TheCopyIsCompleteWithTheAvailableThreads) {
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    options_.io = io;
    const ThreadLimit limit(GetParam());
    ASSERT_OK(copy_now());
    EXPECT_GT(ThreadLimit::refused(), 0) << "as many as it wants";
    EXPECT_EQ(differences_by_rsync(source_, copy_), "");
    std::filesystem::remove_all(copy_);
  }
}

TEST_P(CopyThreads, AVerifiedCopyIsComplete) {
  options_.verify = true;
  const ThreadLimit limit(GetParam());
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_P(CopyThreads, AnIncrementalCopyIsComplete) {
  ASSERT_OK(copy_now());
  write_text(source_ / "new", "new");
  const ThreadLimit limit(GetParam());
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

INSTANTIATE_TEST_SUITE_P(More, CopyThreads, testing::Values(0, 1, 2));

// Fails allocations in the copy's own threads in turn: at first each of them, later in growing steps.
TEST_F(CopyTest, AFailedAllocationInACopyThreadIsReportedAndTheNextCopyIsComplete) {
  if (!spark::test::FailingAllocation::is_possible())
    GTEST_SKIP() << "a sanitizer has all forms of new and delete to itself";
  for (int i = 0; i < 60; ++i)
    write_text(source_ / std::to_string(i % 5) / std::to_string(i), noise(2000, 1));
  write_text(source_ / "large", noise(9'000'000, 2));
  unsigned failed = 0;
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    options_.io = io;
    options_.verify = true;
    for (unsigned nth = 1, counted = nth; nth <= counted; nth += 1 + nth / 8) {
      std::filesystem::remove_all(copy_);
      const spark::test::FailingAllocation failing(nth);
      const auto copied = copy_now();
      counted = failing.counted();
      if (!copied) {
        ++failed;
        EXPECT_THAT(copied.error().what, testing::HasSubstr("Cannot allocate memory")) << nth;
      }
    }
    ASSERT_OK(copy_now());
    EXPECT_EQ(differences_by_rsync(source_, copy_), "");
    std::filesystem::remove_all(copy_);
  }
  EXPECT_GT(failed, 10U);
}

}  // namespace
}  // namespace spark::staging
