#include "daemon/service/members/request_members.hpp"

#include <gmock/gmock.h>

namespace spark {
namespace {

using testing::HasSubstr;

Result<> check(const char* body) {
  return check_members(parse_json_object(body).value());
}

TEST(RequestMembers, ThoseOfTheApiAreTaken) {
  for (const char* body :
       {"{}", R"({"datasets": ["a"], "lease_s": 3600, "hold": true, "max_rate": 1000, "now": ["a"]})",
        R"({"datasets": ["a"], "job": {"system": "slurm", "id": "7", "user": "eve", "processes": [2]}})",
        R"({"datasets": ["a"], "wait_s": null, "lease_s": null, "now": true, "offline": false})",
        R"({"source": "/a", "destination": "v:a", "keep": 3, "nodes": 2, "attempt": "7.0"})",
        R"({"source": "/a", "destination": "v:a", "written": "-7"})",
        R"({"checkpoint": "step-2", "written": "21"})", R"({"by": "alice", "force": true})",
        R"({"yaml": "version: 1", "file": "x"})"}) {
    const auto fits = check(body);
    EXPECT_TRUE(fits) << body << ": " << fits.error().message();
  }
}

TEST(RequestMembers, AQuestionOfAnotherTypeIsNoOrder) {
  const auto fits = check(R"({"if_here": "true"})");
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().kind, Errc::Invalid);
  EXPECT_THAT(fits.error().what, HasSubstr("if_here is not true or false"));
}

TEST(RequestMembers, ALeaseThatWouldNotBeHeldIsRefused) {
  for (const char* body : {R"({"lease_s": "3600"})", R"({"lease_s": 1.5})", R"({"lease_s": true})"})
    EXPECT_FALSE(check(body)) << body;
  const auto misspelt = check(R"({"datasets": ["a"], "lease": 3600})");
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(misspelt.error().message(), HasSubstr("no request has lease - did you mean lease_s?"));
}

TEST(RequestMembers, OneDatasetInPlaceOfAListIsNotAll) {
  EXPECT_FALSE(check(R"({"datasets": "a"})"));
  EXPECT_FALSE(check(R"({"datasets": [1]})"));
  EXPECT_FALSE(check(R"({"attempt": 12})")) << "its shards would be those of any attempt";
}

TEST(RequestMembers, NullIsAsGoodAsNoneButForTheWait) {
  auto body = parse_json_object(R"({"hold": null, "datasets": ["a"], "keep": null, "wait_s": null})").value();
  drop_nulls(body);
  EXPECT_EQ(body, parse_json_object(R"({"datasets": ["a"], "wait_s": null})").value());
}

TEST(RequestMembers, AJobsAreCheckedToo) {
  EXPECT_FALSE(check(R"({"job": "slurm:7"})"));
  EXPECT_THAT(check(R"({"job": {"system": "slurm", "id": 7}})").error().what,
              HasSubstr("job.id is not a text"));
  EXPECT_FALSE(check(R"({"job": {"processes": 12}})"));
}

}  // namespace
}  // namespace spark
