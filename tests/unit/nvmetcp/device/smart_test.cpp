#include "nvmetcp/device/smart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace spark::nvmetcp {
namespace {

using Page = std::array<std::byte, kSmartLogBytes>;

TEST(Smart, AHealthyDriveHasValuesAndNoWarning) {
  Page page{};
  page[1] = std::byte{0x3a};  // 314 K
  page[2] = std::byte{0x01};
  page[3] = std::byte{100};
  page[4] = std::byte{10};
  page[5] = std::byte{7};
  page[160] = std::byte{2};
  const Smart smart = decode_smart(page);
  EXPECT_TRUE(smart.critical.empty());
  EXPECT_EQ(smart.temperature_c, 41);
  EXPECT_EQ(smart.spare_percent, 100U);
  EXPECT_EQ(smart.used_percent, 7U);
  EXPECT_EQ(smart.media_errors, 2U);
}

TEST(Smart, DescribesCriticalWarnings) {
  Page page{};
  page[0] = std::byte{0b1001};
  page[4] = std::byte{10};
  const Smart smart = decode_smart(page);
  EXPECT_THAT(smart.critical, testing::ElementsAre("spare blocks below the threshold", "read-only"));
  EXPECT_EQ(smart.spare_percent, 0U);
}

TEST(Smart, AnEmptyPageHasNoValues) {
  const Smart smart = decode_smart(Page{});
  EXPECT_EQ(smart, Smart{});
  EXPECT_FALSE(smart.temperature_c);
  EXPECT_FALSE(smart.spare_percent);
}

TEST(Smart, AnOverflowingCountIsTheMaximum) {
  Page page{};
  page[168] = std::byte{1};
  EXPECT_EQ(decode_smart(page).media_errors, UINT64_MAX);
}

}  // namespace
}  // namespace spark::nvmetcp
