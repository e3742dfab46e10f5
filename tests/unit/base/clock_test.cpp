#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace spark {
namespace {

TEST(Clock, TimesAreRfc3339InUtc) {
  EXPECT_EQ(rfc3339(WallTime(std::chrono::seconds(0))), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(WallTime(std::chrono::milliseconds(1'795'278'086'900))), "2026-11-21T16:21:26Z");
}

TEST(Clock, MillisecondsAreWrittenWhereHostsAreCompared) {
  EXPECT_EQ(rfc3339_millis(WallTime(std::chrono::milliseconds(1'795'278'086'042))),
            "2026-11-21T16:21:26.042Z");
  EXPECT_EQ(rfc3339_millis(WallTime(std::chrono::seconds(0))), "1970-01-01T00:00:00.000Z");
}

TEST(Clock, ATimeIsReadWithAndWithoutFractionsOfASecond) {
  const WallTime time{std::chrono::seconds(1'795'278'086)};
  EXPECT_EQ(parse_rfc3339(rfc3339(time)), time);
  EXPECT_EQ(parse_rfc3339("2026-11-21T16:21:26.123Z"), time + std::chrono::milliseconds(123));
  EXPECT_EQ(parse_rfc3339("2026-11-21T16:21:26.5Z"), time + std::chrono::milliseconds(500));
  EXPECT_EQ(parse_rfc3339("2026-11-21T16:21:26.1234567890123Z"),
            time + std::chrono::nanoseconds(123'456'789));
  EXPECT_EQ(parse_rfc3339("2026-11-21T16:21:26.Z"), time);
  EXPECT_EQ(parse_rfc3339("yesterday"), std::nullopt);
  EXPECT_EQ(parse_rfc3339("2026-11-21T16:21:26"), std::nullopt);
}

TEST(Clock, ATimeThatDoesNotExistIsRejected) {
  for (const char* text : {"2026-02-31T12:00:00Z", "2026-11-21T24:30:00Z", "2026-11-21T16:21:26+02:00Z",
                           "2026-11-21T16:21:26 Z", "2026-11-21T16:21:26.5 Z", "2026-13-01T00:00:00Z"})
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
  EXPECT_TRUE(parse_rfc3339("2028-02-29T12:00:00Z"));
}

TEST(Clock, ATimeOutsideTheClocksRangeIsRejected) {
  EXPECT_EQ(parse_rfc3339("2426-11-21T16:21:26Z"), std::nullopt);
  EXPECT_EQ(parse_rfc3339("1604-11-21T16:21:26Z"), std::nullopt);
  EXPECT_TRUE(parse_rfc3339("2261-12-31T23:59:59Z"));
}

}  // namespace
}  // namespace spark
