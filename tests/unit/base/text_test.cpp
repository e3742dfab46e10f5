#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spark {
namespace {

using testing::ElementsAre;

TEST(Hex, BytesAndUuidsAreLowerCase) {
  const std::string bytes("\x2f\x7c\x1c\x0e\x8d\x0b\x4c\x39\x9e\x0a\x3f\x6c\x2b\x7d\x5a\x00", 16);
  EXPECT_EQ(hex_of(std::as_bytes(std::span(bytes).first(2))), "2f7c");
  EXPECT_EQ(format_uuid(std::as_bytes(std::span(bytes))), "2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a00");
}

TEST(Text, TrimTakesWhiteSpaceFromBothEndsOnly) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitKeepsEmptyPartsAndJoinUndoesIt) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  const std::vector<std::string> equal = {"x", "x", ""};
  EXPECT_EQ(join(equal, ", "), "x, x, ");
  EXPECT_EQ(join(std::vector<std::string>(), ","), "");
}

TEST(Text, PrintableKeepsReadableText) {
  EXPECT_EQ(printable("nqn.2014-08.org:x y"), "nqn.2014-08.org:x y");
  EXPECT_EQ(printable("Bücher – 数据 🚀"), "Bücher – 数据 🚀");
}

TEST(Text, PrintableEscapesControlCharacters) {
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // C1: also starts a terminal escape
}

TEST(Text, PrintableShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("x\xc3"), "x\\xc3");                           // truncated
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(printable("\xe2(\xa1"), "\\xe2(\\xa1");
}

TEST(Text, NearestFindsTyposButNotUnrelatedWords) {
  const std::vector<std::string> keys = {"targets", "volumes", "cache", "datasets"};
  EXPECT_EQ(nearest("volume", keys), "volumes");
  EXPECT_EQ(nearest("datsaets", keys), "datasets");
  EXPECT_EQ(nearest("zzz", keys), "");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Text, LowerChangesOnlyAscii) {
  EXPECT_EQ(lower("NQN.2014-08:AbÄ"), "nqn.2014-08:abÄ");
}

TEST(Text, ShortenCutsTheMiddleAtCharacterBoundaries) {
  EXPECT_EQ(shorten("short", 10), "short");
  EXPECT_EQ(shorten("/mnt/a/very/long/path", 11), "/mnt/…/path");
  EXPECT_EQ(display_width(shorten("äöüäöüäöüäöü", 7)), 7u);
}

TEST(Text, CutShortTruncatesTheEndAtCharacterBoundaries) {
  EXPECT_EQ(cut_short("short", 5), "short");
  EXPECT_EQ(cut_short("größer als erlaubt", 7), "größer…");
  EXPECT_EQ(cut_short("x", 0), "");
}

}  // namespace
}  // namespace spark
