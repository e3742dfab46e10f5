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

}  // namespace
}  // namespace spark
