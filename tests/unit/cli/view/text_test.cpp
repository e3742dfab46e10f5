#include "cli/view/text.hpp"

#include <gtest/gtest.h>

#include "cli/client/api.hpp"

namespace spark::cli {
namespace {

TEST(Text, IsWrappedAtWords) {
  EXPECT_EQ(wrapped("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("unbreakable-word", 5, 0), "unbreakable-word\n");
}

TEST(Text, ACommandInBackticksIsNotBroken) {
  EXPECT_EQ(wrapped("wait, or `run it now` then", 12, 0), "wait, or\n`run it now`\nthen\n");
  EXPECT_EQ(wrapped("say `a b c d e f g h`, so", 10, 0), "say\n`a b c d e f g h`,\nso\n");
  EXPECT_EQ(wrapped("it's one two", 8, 0), "it's one\ntwo\n") << "an apostrophe begins no quotation";
  EXPECT_EQ(wrapped("an `open end of it", 10, 0), "an `open\nend of it\n");
}

TEST(Text, ASentenceIsOneLineUnlessATerminalShowsIt) {
  EXPECT_EQ(sentence("one two three four", 9, false), "one two three four\n");
  EXPECT_EQ(sentence("one two three four", 9, true), "one two\n  three\n  four\n");
  EXPECT_EQ(sentence("  one two three", 10, true), "  one two\n    three\n") << "its own indent stays";
  EXPECT_EQ(sentence("one two\nthree four", 8, true), "one two\nthree\n  four\n");
  EXPECT_EQ(sentence("", 8, true), "\n");
}

TEST(Text, CountsHaveThousandsAndPlurals) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1281167), "1,281,167");
  EXPECT_EQ(counted(1, "file"), "1 file");
  EXPECT_EQ(counted(2, "file"), "2 files");
}

TEST(Text, AgesGetCoarserWithTime) {
  using namespace std::chrono_literals;
  EXPECT_EQ(format_age(-5s), "0 s");
  EXPECT_EQ(format_age(59s), "59 s");
  EXPECT_EQ(format_age(60s), "1 min");
  EXPECT_EQ(format_age(3h + 10min), "3 h 10 min");
  EXPECT_EQ(format_age(76h), "3 d 4 h");
}

TEST(Text, TheAgeOfAnApiTimestampIsPrinted) {
  const WallTime time = std::chrono::system_clock::from_time_t(1'795'188'086);
  EXPECT_EQ(age_of(rfc3339(time), time + std::chrono::minutes(3)), "3 min");
  EXPECT_EQ(age_of("yesterday", time), "-");
  EXPECT_EQ(age_of(std::nullopt, time), "-");
}

TEST(Text, SegmentsOfAPathAreEncoded) {
  EXPECT_EQ(percent_encoded("datasets:imagenet/train"), "datasets%3Aimagenet%2Ftrain");
  EXPECT_EQ(percent_encoded("a b%\xff"), "a%20b%25%FF");
}

}  // namespace
}  // namespace spark::cli
