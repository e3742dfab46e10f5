#include "cli/client/bounded_call.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace spark::cli {
namespace {

TEST(BoundedCall, GivesTheAnswer) {
  const auto answer = call_bounded(Duration(5000), [] {
    return Result<json::object>(json::object{{"a", 1}});
  });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->at("a"), 1);
}

TEST(BoundedCall, GivesTheError) {
  const auto answer =
      call_bounded(Duration(5000), []() -> Result<json::object> { return fail(Errc::Refused, "no", "yes"); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::Refused);
  EXPECT_EQ(answer.error().message(), "no - yes");
}

TEST(BoundedCall, ReturnsAnswersLargerThanAPipe) {
  const std::string large(1 << 20, 'x');
  const auto answer = call_bounded(Duration(5000), [&] {
    return Result<json::object>(json::object{{"a", large}});
  });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->at("a").as_string().size(), large.size());
}

TEST(BoundedCall, EndsAtItsDeadline) {
  const auto answer = call_bounded(Duration(200), [] {
    ::sleep(60);  // longer than the call may take
    return Result<json::object>(json::object());
  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::TimedOut);
}

TEST(BoundedCall, AChildThatDiesIsAnError) {
  const auto answer = call_bounded(Duration(5000), []() -> Result<json::object> { ::_exit(1); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::Failed);
}

}  // namespace
}  // namespace spark::cli
