#include "cli/command_line/mistakes.hpp"

#include <gmock/gmock.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using ::testing::HasSubstr;

TEST(Mistakes, RunWithoutDashesSaysWhereTheyBelong) {
  const auto said = [](std::vector<std::string> words) {
    Program run;
    words.insert(words.begin(), "run");
    EXPECT_EQ(run.run(words), 2);
    return run.errors();
  };
  EXPECT_THAT(said({"imagenet", "sh", "x.sh", "--lr", "3"}),
              HasSubstr("did you mean: spark-stage run imagenet -- sh x.sh --lr 3"));
  EXPECT_THAT(said({"--offline", "imagenet", "models", "/bin/sh"}),
              HasSubstr("did you mean: spark-stage run --offline imagenet models -- /bin/sh"));
  EXPECT_THAT(said({"imagenet", "models"}),
              HasSubstr("for example: spark-stage run imagenet models -- python train.py"));
  EXPECT_THAT(said({"imagenet", "--"}),
              HasSubstr("for example: spark-stage run imagenet -- python train.py"));
  EXPECT_THAT(said({}), HasSubstr("needs datasets, and a command behind --"));
}

}  // namespace
}  // namespace spark::cli
