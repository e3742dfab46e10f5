#include "base/apart.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace spark {
namespace {

TEST(RunApart, ResultsAndErrorsAreReturned) {
  const ApartOptions options{"asking", Duration(10'000), nullptr};
  const auto answer = run_apart(options, []() -> Result<json::value> {
    return json::object{{"pid", ::getpid()}, {"text", std::string(200'000, 'x')}};
  });
  ASSERT_TRUE(answer);
  EXPECT_NE(get_int(answer->as_object(), "pid"), ::getpid());
  EXPECT_EQ(get_string(answer->as_object(), "text")->size(), 200'000u);
  const auto error =
      run_apart(options, []() -> Result<json::value> { return fail(Errc::NoSpace, "full", "make room"); });
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().kind, Errc::NoSpace);
  EXPECT_EQ(error.error().message(), "full - make room");
}

TEST(RunApart, AHangingCallTimesOutAndACrashIsReported) {
  const auto late = run_apart({"asking", Duration(300), nullptr}, []() -> Result<json::value> {
    ::sleep(60);
    return json::value();
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Errc::TimedOut);
  EXPECT_EQ(late.error().what, "asking: no answer within 300 ms");
  const auto dead =
      run_apart({"asking", Duration(5000), nullptr}, []() -> Result<json::value> { ::_exit(9); });
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().message(), "asking: the child process ended without an answer");
}

TEST(RunApart, TheStopFlagEndsTheWait) {
  const StopFlag stop = true;
  const auto stopped = run_apart({"asking", Duration(60'000), &stop}, []() -> Result<json::value> {
    ::sleep(60);
    return json::value();
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Errc::Cancelled);
}

TEST(RunApart, AnObjectAndAnErrorOfWorkWithoutAName) {
  ApartOptions options;
  options.deadline = Duration(5'000);
  options.outlives_parent = true;
  const auto answer = run_apart(options, [] { return Result<json::object>(json::object{{"a", 1}}); });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->at("a"), 1);
  const auto dead = run_apart(options, []() -> Result<> { ::_exit(1); });
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().what, "the child process ended without an answer");
}

}  // namespace
}  // namespace spark
