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
  int set(const std::string& datasets, const char* names = "imagenet,coco") {
    StagedList staged{};
    Progress progress{};
    const std::string done = R"({"event":"done","result":{"datasets":)" + datasets + "}}";
    EXPECT_EQ(json_read_event(done.c_str(), &progress, &staged, &failure_), EventDone);
    EXPECT_EQ(parse_names("stage", names, &names_, &failure_), 0);
    const int result = set_dataset_variables(&environment_, &names_, &staged, &failure_);
    free_staged(&staged);
    return result;
  }

  NameList names_{};
  Failure failure_{};
  std::vector<std::string> variables_;
  Environment environment_{note_variable, nullptr, nullptr, &variables_};
  const std::string first_ = R"([{"path":"/cache/imagenet","env":"IMAGENET_ROOT"})";
  const std::string both_ = first_ + R"(,{"path":"/cache/coco"}])";
};

TEST_F(EnvironmentTest, HasThePathOfEachCopyAlsoUnderItsConfiguredName) {
  EXPECT_EQ(set(both_), 0);
  EXPECT_THAT(variables_, ElementsAre("SPARK_STAGE_IMAGENET=/cache/imagenet", "IMAGENET_ROOT=/cache/imagenet",
                                      "SPARK_STAGE_COCO=/cache/coco"));
}

TEST_F(EnvironmentTest, LeavesTheDaemonsVariableAlone) {
  EXPECT_EQ(set(R"([{"path":"/cache/socket","env":"SOCKETS"}])", "socket"), 0);
  EXPECT_THAT(variables_, ElementsAre("SOCKETS=/cache/socket"));
}

TEST_F(EnvironmentTest, IsEmptyIfTheDaemonReportsOtherDatasets) {
  for (const char* other : {"[]", "7", R"([{"path":"/c/1"}])", R"([{"path":7},{}])"}) {
    EXPECT_EQ(set(other), -1) << other;
    EXPECT_THAT(variables_, ElementsAre());
    free_names(&names_);
  }
}

TEST_F(EnvironmentTest, StopsAtTheFirstVariableThatCannotBeSet) {
  environment_.set = refuse;
  EXPECT_EQ(set(both_), -1);
  EXPECT_STREQ(failure_.what, "not SPARK_STAGE_IMAGENET");
}

TEST_F(EnvironmentTest, HasTheFolderOfAnOutput) {
  EXPECT_EQ(set_output_variable(&environment_, "run-7", "/data/out", &failure_), 0);
  EXPECT_THAT(variables_, ElementsAre("SPARK_STAGE_OUT_RUN_7=/data/out"));
}

}  // namespace
}  // namespace spark
