#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_daemon.hpp"

extern "C" {
#include "slurm/environment.h"
}

namespace spark {
namespace {

using testing::ElementsAre;

int note_variable(void* step, const char* name, const char* value, Failure*) {
  static_cast<std::vector<std::string>*>(step)->push_back(std::string(name) + "=" + value);
  return 0;
}

int refuse(void*, const char* name, const char*, Failure* failure) {
  return fail_with(failure, "failed", "", "not %s", name);
}

class EnvironmentTest : public testing::Test {
 protected:
  ~EnvironmentTest() override { free_names(&names_); }
  int set(const StagedList& staged) {
    EXPECT_EQ(parse_names("stage", "imagenet,coco", &names_, &failure_), 0);
    return set_dataset_variables(&environment_, &names_, &staged, &failure_);
  }

  NameList names_{};
  Failure failure_{};
  std::vector<std::string> variables_;
  Environment environment_{note_variable, &variables_};
  std::string first_ = "/cache/imagenet", second_ = "/cache/coco";
  char* paths_[2] = {first_.data(), second_.data()};
  std::string variable_ = "IMAGENET_ROOT";
  char* configured_[2] = {variable_.data(), nullptr};
};

TEST_F(EnvironmentTest, HasThePathOfEachCopyAlsoUnderItsConfiguredName) {
  EXPECT_EQ(set({2, paths_, paths_, configured_}), 0);
  EXPECT_THAT(variables_, ElementsAre("SPARK_STAGE_IMAGENET=/cache/imagenet", "IMAGENET_ROOT=/cache/imagenet",
                                      "SPARK_STAGE_COCO=/cache/coco"));
}

TEST_F(EnvironmentTest, IsEmptyIfTheDaemonReportsOtherDatasets) {
  EXPECT_EQ(set({1, paths_, paths_, configured_}), -1);
  EXPECT_THAT(variables_, ElementsAre());
}

TEST_F(EnvironmentTest, StopsAtTheFirstVariableThatCannotBeSet) {
  environment_.set = refuse;
  EXPECT_EQ(set({2, paths_, paths_, configured_}), -1);
  EXPECT_STREQ(failure_.what, "not SPARK_STAGE_IMAGENET");
}

TEST_F(EnvironmentTest, HasTheFolderOfAnOutput) {
  EXPECT_EQ(set_output_variable(&environment_, "run-7", "/data/out", &failure_), 0);
  EXPECT_THAT(variables_, ElementsAre("SPARK_STAGE_OUT_RUN_7=/data/out"));
}

}  // namespace
}  // namespace spark
