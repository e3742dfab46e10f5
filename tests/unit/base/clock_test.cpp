#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace spark {
namespace {

TEST(Clock, TimesAreRfc3339InUtc) {
  EXPECT_EQ(rfc3339(WallTime(std::chrono::seconds(0))), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(WallTime(std::chrono::milliseconds(1'795'278'086'900))), "2026-11-21T16:21:26Z");
}

}  // namespace
}  // namespace spark
