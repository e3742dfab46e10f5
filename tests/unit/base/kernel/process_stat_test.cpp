#include "base/kernel/process_stat.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>

namespace spark {
namespace {

TEST(ProcessStat, ANameMayContainBlanksAndParentheses) {
  const auto stat = parse_process_stat("17 (a) b) c) S 12 17 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) b) c");
  EXPECT_EQ(stat->fields[0], "S");
  EXPECT_EQ(stat->field<pid_t>(4), 12);
  EXPECT_EQ(stat->field<pid_t>(6), 0);
  EXPECT_FALSE(stat->field<pid_t>(7));
}

TEST(ProcessStat, WhatIsMissingOrNoNumberHasNoValue) {
  for (const char* text : {"", "17", "17 )a(", "17 (a"}) EXPECT_FALSE(parse_process_stat(text)) << text;
  for (const char* text : {"17 (a)", "17 (a) S", "17 (a) S x"})
    EXPECT_FALSE(parse_process_stat(text)->field<pid_t>(4)) << text;
}

}  // namespace
}  // namespace spark
