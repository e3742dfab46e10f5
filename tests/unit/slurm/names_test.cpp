#include <gmock/gmock.h>
#include <gtest/gtest.h>

extern "C" {
#include "slurm/names.h"
}

namespace spark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> parsed(const char* text) {
  NameList list{};
  Failure failure{};
  EXPECT_EQ(parse_names("stage", text, &list, &failure), 0) << failure.what;
  std::vector<std::string> names(list.names, list.names + list.count);
  free_names(&list);
  return names;
}

std::string refusal(const char* text) {
  NameList list{};
  Failure failure{};
  EXPECT_EQ(parse_names("stage", text, &list, &failure), -1);
  return failure.what;
}

std::string variable(const char* dataset) {
  char* name = environment_name(dataset);
  const std::string copy = name;
  std::free(name);
  return copy;
}

TEST(Names, AreSeparatedByCommas) {
  EXPECT_THAT(parsed("imagenet"), ElementsAre("imagenet"));
  EXPECT_THAT(parsed("imagenet,data:coco/train"), ElementsAre("imagenet", "data:coco/train"));
}

TEST(Names, DuplicatesAreTakenOnce) {
  EXPECT_THAT(parsed("a,b,a"), ElementsAre("a", "b"));
}

TEST(Names, EmptyNamesAreRefused) {
  for (const char* text : {"", ",", "a,", ",a", "a,,b"})
    EXPECT_THAT(refusal(text), HasSubstr("an empty name")) << text;
}

TEST(Names, VolumePathsNeedBothParts) {
  EXPECT_THAT(refusal(":coco"), HasSubstr("no volume before the colon"));
  EXPECT_THAT(refusal("data:"), HasSubstr("no path after the colon"));
}

TEST(Names, ControlCharactersAreRefused) {
  EXPECT_THAT(refusal("a\nb"), HasSubstr("a control character"));
}

TEST(Names, NamesThatShareAVariableAreRefused) {
  EXPECT_THAT(refusal("image-net,image.net"),
              HasSubstr("image-net and image.net would both be SPARK_STAGE_IMAGE_NET"));
}

TEST(Names, VariablesAreNamedAsInRun) {
  EXPECT_EQ(variable("imagenet-21k"), "SPARK_STAGE_IMAGENET_21K");
  EXPECT_EQ(variable("data:coco/train"), "SPARK_STAGE_DATA_COCO_TRAIN");
}

}  // namespace
}  // namespace spark
