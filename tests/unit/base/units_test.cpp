#include "base/units.hpp"

#include <gtest/gtest.h>

namespace spark {
namespace {

TEST(Units, SizesInBinaryAndDecimalUnitsAreRead) {
  EXPECT_EQ(parse_bytes("2TiB").value(), 2 * kTiB);
  EXPECT_EQ(parse_bytes("1.5 GB").value(), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("4096").value(), 4096u);
}

TEST(Units, AnInvalidSizeIsRefusedWithAnExample) {
  for (const char* text : {"", "GB", "-1GB", "1 XB", "1e30TB", "nan", "0x10", "12 GB extra"}) {
    const auto size = parse_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().kind, Errc::Invalid);
    EXPECT_NE(size.error().hint.find("GB"), std::string::npos);
  }
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("250ms").value(), Duration(250));
  EXPECT_EQ(parse_duration("3d").value(), Duration(3 * 86'400'000LL));
  EXPECT_FALSE(parse_duration("5"));
}

TEST(Units, NeverMeansNoDuration) {
  EXPECT_EQ(parse_optional_duration("never", "never").value(), std::nullopt);
  EXPECT_EQ(parse_optional_duration("10s", "never").value(), Duration(10'000));
  EXPECT_NE(parse_optional_duration("soon", "never").error().hint.find("never"), std::string::npos);
}

TEST(Units, SizesArePrintedWithThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(999'950), "1.00 MB");
  EXPECT_EQ(format_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(format_bytes(4'000'000'000'000), "4.00 TB");
}

TEST(Units, DurationsArePrintedAsPeopleSayThem) {
  using namespace std::chrono_literals;
  EXPECT_EQ(format_duration(250ms), "250 ms");
  EXPECT_EQ(format_duration(3400ms), "3.4 s");
  EXPECT_EQ(format_duration(130s), "2 min 10 s");
  EXPECT_EQ(format_duration(3900s), "1 h 05 min");
}

TEST(Units, ARateOfAPersonNeedsAUnit) {
  EXPECT_EQ(parse_rate_with_unit("3.2GB/s").value(), 3'200'000'000u);
  EXPECT_EQ(parse_rate_with_unit("500B/s").value(), 500u);
  for (const char* text : {"500", "500/s", " 500 ", "0.5"}) {
    const auto rate = parse_rate_with_unit(text);
    ASSERT_FALSE(rate) << text;
    EXPECT_NE(rate.error().message().find("has no unit"), std::string::npos) << rate.error().message();
  }
  EXPECT_FALSE(parse_rate_with_unit("fast"));
}

}  // namespace
}  // namespace spark
