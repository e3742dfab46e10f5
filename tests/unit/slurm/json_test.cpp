#include <gmock/gmock.h>
#include <gtest/gtest.h>

extern "C" {
#include "slurm/json.h"
}

namespace spark {
namespace {

std::string owned(char* text) {
  std::string copy = text == nullptr ? "(none)" : text;
  std::free(text);
  return copy;
}

TEST(Json, ARequestNamesTheJobAndItsProcess) {
  char first[] = "imagenet", second[] = "data:a \"b\"";
  char* names[] = {first, second};
  const NameList list{2, names, nullptr};
  const JobTag job{123, "alice", 77, "n[1-4]"}, prolog{123, nullptr, 0, nullptr};
  EXPECT_EQ(
      owned(json_staging(&list, &job, false)),
      R"({"datasets":["imagenet","data:a \"b\""],)"
      R"("job":{"system":"slurm","id":"123","user":"alice","nodes":"n[1-4]","processes":[77]},"wait_s":null})");
  EXPECT_EQ(
      owned(json_staging(&list, &prolog, true)),
      R"({"datasets":["imagenet","data:a \"b\""],"job":{"system":"slurm","id":"123"},"prefetch":true,"wait_s":null})");
  EXPECT_EQ(owned(json_staging(&list, nullptr, false)), R"({"datasets":["imagenet","data:a \"b\""]})");
}

TEST(Json, ARequestNamesTheDatasetsThatMayBeReadBeforeTheyAreComplete) {
  char first[] = "a", second[] = "b";
  char* names[] = {first, second};
  bool now[] = {false, true};
  const JobTag job{123, nullptr, 0, nullptr};
  const NameList list{2, names, now};
  EXPECT_EQ(owned(json_staging(&list, &job, false)),
            R"({"datasets":["a","b"],"job":{"system":"slurm","id":"123"},"now":["b"],"wait_s":null})");
}

TEST(Json, ARefusalIsReadWithItsNextStep) {
  Failure failure{};
  json_read_error(R"({"error":{"kind":"not_found","what":"there is no dataset 'a'","hint":"known: b"}})", 404,
                  &failure);
  EXPECT_STREQ(failure.kind, "not_found");
  EXPECT_STREQ(failure.what, "there is no dataset 'a'");
  EXPECT_STREQ(failure.hint, "known: b");
  json_read_error("<html>", 500, &failure);
  EXPECT_STREQ(failure.what, "spark-staged answered with HTTP status 500");
}

TEST(Json, EventsAreDistinguished) {
  Progress progress{};
  StagedList staged{};
  Failure failure{};
  EXPECT_EQ(json_read_event(
                R"({"event":"progress","dataset":"a","phase":"copying","bytes_done":5,"bytes_total":10,)"
                R"("bytes_per_second":2.5,"eta_s":null})",
                &progress, &staged, &failure),
            EventProgress);
  EXPECT_STREQ(progress.dataset, "a");
  EXPECT_EQ(progress.bytes_total, 10);
  EXPECT_LT(progress.eta_s, 0);
  EXPECT_EQ(json_read_event(R"({"event":"done","result":{"datasets":[{"name":"a","path":"/c/a"}]}})",
                            &progress, &staged, &failure),
            EventDone);
  ASSERT_EQ(staged.count, 1U);
  EXPECT_STREQ(staged_text(&staged, 0, "path"), "/c/a");
  free_staged(&staged);
  EXPECT_EQ(json_read_event(R"({"event":"failed","error":{"kind":"no_space","what":"w","hint":""}})",
                            &progress, &staged, &failure),
            EventFailed);
  EXPECT_STREQ(failure.kind, "no_space");
  for (const char* other : {"", "[]", "{}", R"({"event":"new"})", R"({"event":7})", "{"})
    EXPECT_EQ(json_read_event(other, &progress, &staged, &failure), EventOther) << other;
}

TEST(Json, AnAcceptedRequestHasAJob) {
  EXPECT_EQ(owned(json_job_key(R"({"id":"7","key":"7-1f","verb":"stage"})")), "7-1f");
  for (const char* answer : {"", "{}", R"({"key":7})"})
    EXPECT_EQ(owned(json_job_key(answer)), "(none)") << answer;
}

TEST(Json, DatasetsAndVolumeFoldersAreFoundInTheConfiguration) {
  const char* config =
      R"({"volumes":{"data":{}},"datasets":{"a":{"path":"/a"},"b":{"path":"/b","env":"HF_HOME"}}})";
  EXPECT_TRUE(json_config_has(config, "a"));
  EXPECT_TRUE(json_config_has(config, "data:any/folder"));
  EXPECT_FALSE(json_config_has(config, "data"));
  EXPECT_FALSE(json_config_has(config, "c"));
  EXPECT_FALSE(json_config_has(config, "a:x"));
}

}  // namespace
}  // namespace spark
