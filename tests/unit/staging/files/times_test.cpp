#include "staging/files/times.hpp"

#include <gtest/gtest.h>

namespace spark::staging {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Times, AreNanosecondsSince1970) {
  EXPECT_EQ(nanoseconds(timespec{3, 5}), 3 * kSecond + 5);
  EXPECT_EQ(nanoseconds(timespec{-1, 999'999'999}), -1);
}

TEST(Times, TimesOutOfRangeAreClamped) {
  const std::int64_t far = nanoseconds(timespec{20'000'000'000, 0});  // the year 2603
  EXPECT_GT(far, nanoseconds(timespec{9'000'000'000, 0}));
  EXPECT_EQ(nanoseconds(timespec{30'000'000'000, 0}), far);
  EXPECT_LT(nanoseconds(timespec{-20'000'000'000, 0}), 0);
}

TEST(Times, ARoundedDownTimeOfACoarserFileSystemCountsAsKept) {
  const std::int64_t given = 1'700'000'001 * kSecond + 123'456'789;
  EXPECT_TRUE(is_time_kept(given, given));
  EXPECT_TRUE(is_time_kept(1'700'000'001 * kSecond, given)) << "ext3";
  EXPECT_TRUE(is_time_kept(1'700'000'000 * kSecond, given)) << "FAT";
  EXPECT_TRUE(is_time_kept(given - 89, given)) << "NTFS";
  EXPECT_TRUE(is_time_kept(given - 3'456'789, given)) << "exFAT";
  EXPECT_FALSE(is_time_kept(given + 1, given));
  EXPECT_FALSE(is_time_kept(given - 1, given));
  EXPECT_FALSE(is_time_kept(1'700'000'002 * kSecond, given));
  EXPECT_TRUE(is_time_kept(-2 * kSecond, -kSecond - 1)) << "before 1970";
}

}  // namespace
}  // namespace spark::staging
