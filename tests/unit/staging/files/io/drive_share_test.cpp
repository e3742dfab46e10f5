#include "staging/files/io/drive_share.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temp_folder.hpp"

namespace spark::staging {
namespace {

using test::TempFolder;

using namespace std::chrono_literals;

constexpr Bytes kLeast = 16 * kMiB;

// A drive with a copy and possibly other readers; each step is 300 ms.
class OthersUseTest : public testing::Test {
 protected:
  Bytes step(Bytes others, Bytes copy) {
    now += 300ms;
    drive += others + copy;
    mine += copy;
    return use.limit(drive, mine, now);
  }
  Bytes steps(int count, Bytes others, Bytes copy) {
    Bytes limit = 0;
    for (int i = 0; i < count; ++i) limit = step(others, copy);
    return limit;
  }

  OthersUse use;
  SteadyTime now{};
  Bytes drive = 5 * kGiB, mine = 0;
};

TEST_F(OthersUseTest, ACopyStartsAtTheMinimumRateAndIsUnlimitedOnceAlone) {
  EXPECT_EQ(step(0, 0), kLeast);
  EXPECT_EQ(steps(2, 0, 10 * kMiB), 0u);
}

TEST_F(OthersUseTest, OtherReadersGetTheDriveExceptForASmallShare) {
  step(0, 0);
  EXPECT_EQ(steps(4, 60 * kMiB, 9 * kMiB), kLeast);
  const Bytes beside_much = steps(4, 3 * kGiB, 9 * kMiB);
  EXPECT_GT(beside_much, 50 * kMiB);
  EXPECT_LT(beside_much, 10 * kGiB * 2 / 100);
}

TEST_F(OthersUseTest, NewReadersAreNoticedDuringACopyAtFullSpeed) {
  step(0, 0);
  ASSERT_EQ(steps(3, 0, 500 * kMiB), 0u);
  EXPECT_GT(step(100 * kMiB, 500 * kMiB), 0u);
}

TEST_F(OthersUseTest, ItSlowsDownBrieflyToDetectStarvedReaders) {
  step(0, 0);
  ASSERT_EQ(steps(3, 5 * kMiB / 100, 500 * kMiB), 0u);
  int looks = 0;
  for (int i = 0; i < 50; ++i) looks += step(0, 500 * kMiB) > 0 ? 1 : 0;
  EXPECT_GE(looks, 1);
  EXPECT_LE(looks, 8) << "it is at full speed nearly always";
}

TEST_F(OthersUseTest, TheCopyIsUnlimitedAgainWhenOtherReadersEnd) {
  step(0, 0);
  ASSERT_EQ(steps(4, 60 * kMiB, 9 * kMiB), kLeast);
  EXPECT_EQ(steps(3, 0, 9 * kMiB), 0u);
}

TEST(DriveShare, ADriveWithoutCountersSetsNoLimit) {
  DriveShare share(makedev(0, 55), TempFolder().path());
  EXPECT_EQ(share.limit(kMiB, SteadyTime(1h)), 0u);
}

class DriveShareTest : public testing::Test {
 protected:
  DriveShareTest() {
    std::filesystem::create_directories(root.path() / "dev/block/259:1");
    std::ofstream(root.path() / "dev/block/259:1/stat") << "  5  0  1000  3  5  0  2000  3  0  9  9\n";
    set_class(3);
  }
  ~DriveShareTest() override { set_class(0); }
  static void set_class(int io_class) {
    ::syscall(SYS_ioprio_set, 1, 0, io_class << 13 | (io_class == 3 ? 7 : 0));
  }

  TempFolder root;
};

TEST_F(DriveShareTest, OnlyACopyAtIdlePriorityIsLimited) {
  DriveShare share(makedev(259, 1), root.path());
  EXPECT_EQ(share.limit(kMiB, SteadyTime(1h)), kLeast);
  set_class(0);
  EXPECT_EQ(share.limit(kMiB, SteadyTime(2h)), 0u);
}

}  // namespace
}  // namespace spark::staging
