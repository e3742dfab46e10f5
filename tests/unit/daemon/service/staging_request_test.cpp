#include "daemon/service/staging_request.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace spark {
namespace {

// As in a container with a PID namespace of its own: nothing would end the lease.
TEST(StagingRequest, ACallerThatTheDaemonDoesNotSeeHoldsNothing) {
  api::Request request;
  request.caller = {.may_use = true};
  request.body = json::object{{"datasets", json::array{"imagenet"}}, {"hold", true}};
  const auto refused = read_staging(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_NE(refused.error().hint.find("--pid=host"), std::string::npos) << refused.error().hint;
  request.caller.pid = ::getpid();
  const auto seen = read_staging(request);
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->process.pid, ::getpid());
  request.body.erase("hold");
  request.caller.pid = 0;
  EXPECT_TRUE(read_staging(request)) << "it only stages";
}

api::Request from_hook(json::value now) {
  api::Request request;
  request.caller = {.may_change = true, .may_use = true};
  request.body = json::object{{"datasets", json::array{"imagenet", "models"}},
                              {"job", json::object{{"system", "slurm"}, {"id", "123"}}},
                              {"wait_s", nullptr},
                              {"now", std::move(now)}};
  return request;
}

TEST(StagingRequest, AJobMayTakeAllOrSomeOfItsDatasetsAtOnce) {
  const auto all = read_staging(from_hook(true));
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_TRUE(all->is_now("imagenet") && all->is_now("models"));
  const auto one = read_staging(from_hook(json::array{"models"}));
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_TRUE(!one->is_now("imagenet") && one->is_now("models"));
  EXPECT_FALSE(all->own_key().empty()) << "the hooks of a job share one request";
  EXPECT_NE(all->own_key(), one->own_key());
  const auto none = read_staging(from_hook(json::array{}));
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_FALSE(none->now);
  for (const json::value& wrong : {json::value(json::array{"other"}), json::value(json::array{7})})
    EXPECT_FALSE(read_staging(from_hook(wrong)));
}

TEST(StagingRequest, NowIsNotForAPrefetchOrAMountedGeneration) {
  api::Request prefetch = from_hook(true), mounted = from_hook(true);
  prefetch.body["prefetch"] = true;
  mounted.body["datasets"] = json::array{"imagenet"};
  mounted.body["generation"] = 3;
  for (const api::Request& wrong : {prefetch, mounted}) EXPECT_FALSE(read_staging(wrong));
}

}  // namespace
}  // namespace spark
