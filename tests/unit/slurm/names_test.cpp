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

TEST(Names, ThoseThatEndWithNowAreTakenAtOnce) {
  NameList list{};
  Failure failure{};
  ASSERT_EQ(parse_names("stage", "imagenet:now,coco,data:train/now,data:a:now", &list, &failure), 0);
  EXPECT_THAT(std::vector<std::string>(list.names, list.names + list.count),
              ElementsAre("imagenet", "coco", "data:train/now", "data:a"));
  EXPECT_THAT(std::vector<bool>(list.now, list.now + list.count), ElementsAre(true, false, false, true));
  free_names(&list);
  ASSERT_EQ(parse_names("prefetch", "data:now", &list, &failure), 0);
  EXPECT_STREQ(list.names[0], "data:now") << "a prefetch is for a later job: this is a folder";
  EXPECT_FALSE(list.now[0]);
  free_names(&list);
  EXPECT_THAT(refusal(":now"), HasSubstr("an empty name"));
}

TEST(Names, ADatasetNamedWithAndWithoutNowIsNeededWhole) {
  for (const char* text : {"a:now,b:now,a", "a,b:now,a:now", "a:now,a,b:now,a:now"}) {
    NameList list{};
    Failure failure{};
    ASSERT_EQ(parse_names("stage", text, &list, &failure), 0);
    EXPECT_THAT(std::vector<std::string>(list.names, list.names + list.count), ElementsAre("a", "b")) << text;
    EXPECT_THAT(std::vector<bool>(list.now, list.now + list.count), ElementsAre(false, true)) << text;
    free_names(&list);
  }
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
