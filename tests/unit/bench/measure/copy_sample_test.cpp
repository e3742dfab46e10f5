#include "bench/measure/small_work.hpp"

#include <gtest/gtest.h>

namespace spark::bench {
namespace {

using Folders = std::vector<std::string>;

const CopySample kClasses{"/set",
                          {{"/set/c", 40}, {"/set/a", 30}, {"/set/x/b", 50}, {"/set/d", 10}, {"/set/e", 90}}};

TEST(CopySample, ARoundCopiesFoldersThatTogetherAreSmallEnough) {
  EXPECT_EQ(kClasses.of_round(0, 100), (Folders{"c", "a"}));
}

TEST(CopySample, EachRoundContinuesAfterThePreviousOne) {
  EXPECT_EQ(kClasses.of_round(1, 100), (Folders{"x/b", "d"}));
  EXPECT_EQ(kClasses.of_round(2, 100), (Folders{"e"}));
  EXPECT_EQ(kClasses.of_round(3, 100), (Folders{"c", "a"}));
}

TEST(CopySample, NoFolderIsTakenTwiceInARound) {
  EXPECT_EQ(kClasses.of_round(0, 10'000).size(), 5u);
}

TEST(CopySample, ADatasetThatIsOneFolderIsCopiedWhole) {
  EXPECT_EQ((CopySample{"/set", {{"/set", 90}}}.of_round(2, 100)), Folders());
}

}  // namespace
}  // namespace spark::bench
