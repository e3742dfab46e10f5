#include "daemon/fleet/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace spark::fleet;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

TEST(NodeList, SlurmsNotationIsExpanded) {
  EXPECT_THAT(expand_node_list("spark1"), ElementsAre("spark1"));
  EXPECT_THAT(expand_node_list("spark[1-3,07],head"),
              ElementsAre("spark1", "spark2", "spark3", "spark07", "head"));
  EXPECT_THAT(expand_node_list("n[4294967294-4294967295]"), ElementsAre("n4294967294", "n4294967295"));
  EXPECT_THAT(expand_node_list("n[08-11].lan"), ElementsAre("n08.lan", "n09.lan", "n10.lan", "n11.lan"));
  EXPECT_THAT(expand_node_list("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
}

TEST(NodeList, InvalidNotationGivesAnEmptyList) {
  for (const char* text :
       {"", ",", "a,", "a b", "n[1-", "n[1-2", "n]1[", "n[]", "n[2-1]", "n[a-b]", "n[1-2-3]", "n[1-99999]",
        "n[1-200],m[1-200]", "r[1-20]n[1-20]", "../a", "n[4294967295-4294967296]"})
    EXPECT_THAT(expand_node_list(text), IsEmpty()) << text;
}

}  // namespace
