// Future times as users write them
#include "cli/verbs/datasets/by_time.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace spark::cli {
namespace {

class ByTime : public ::testing::Test {
 protected:
  ByTime() { set_zone("Europe/Berlin"); }
  ~ByTime() override { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  static std::string by(const std::string& text, const std::string& now = "2026-11-25T12:00:00Z") {
    const auto time = parse_by(text, *parse_rfc3339(now));
    return time ? rfc3339(*time) : time.error().message();
  }
};

TEST_F(ByTime, ATimeOfDayIsItsNextOccurrenceInLocalTime) {
  if (std::string(::getenv("TZ")) != "Europe/Berlin" || ::timezone == 0)
    GTEST_SKIP() << "this host has no time zones";
  EXPECT_EQ(by("18:00"), "2026-11-25T17:00:00Z");
  EXPECT_EQ(by("13:00"), "2026-11-26T12:00:00Z") << "it is just that: tomorrow's";
  EXPECT_EQ(by("7:05"), "2026-11-26T06:05:00Z");
  EXPECT_EQ(by("08:00", "2026-10-24T12:00:00Z"), "2026-10-25T07:00:00Z")
      << "the clock is set back in between";
}

TEST_F(ByTime, ADurationCountsFromNow) {
  EXPECT_EQ(by("2h"), "2026-11-25T14:00:00Z");
  EXPECT_EQ(by("36h"), "2026-11-27T00:00:00Z");
}

TEST_F(ByTime, AFullTimeIsRfc3339) {
  EXPECT_EQ(by("2026-11-25T18:00:00Z"), "2026-11-25T18:00:00Z");
  EXPECT_EQ(by("2026-11-25T18:00:00+01:00"), "2026-11-25T17:00:00Z");
  EXPECT_EQ(by("2026-11-25T18:00:00-05:30"), "2026-11-25T23:30:00Z");
}

TEST_F(ByTime, ATimeThatIsOverOrTooFarAheadIsRefused) {
  for (const char* text : {"2026-11-25T12:00:00Z", "2020-01-01T00:00:00Z", "2026-11-25T12:30:00+01:00", "0s"})
    EXPECT_NE(by(text).find("' is over - for example: 18:00, 2h"), std::string::npos) << by(text);
  for (const char* text : {"4000d", "9999999999d", "2126-11-25T12:00:00Z"})
    EXPECT_NE(by(text).find("' is too far ahead"), std::string::npos) << by(text);
}

TEST_F(ByTime, AnInvalidTimeIsRefusedWithExamples) {
  for (const char* text :
       {"", "soon", "25:00", "18:60", "18:00:00", "2026-11-25", "2026-11-25T18:00:00", "+01:00"})
    EXPECT_NE(by(text).find("is not a time ahead - for example: 18:00, 2h"), std::string::npos) << text;
}

}  // namespace
}  // namespace spark::cli
