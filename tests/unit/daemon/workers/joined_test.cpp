#include "daemon/workers/joined.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

#include <string>
#include <vector>

#include "daemon/token.hpp"
#include "tests/support/run_on.hpp"

namespace spark::workers {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
namespace asio = boost::asio;

// Each question is answered with its number, when the test calls finish().
class JoinedTest : public testing::Test {
 protected:
  void come(const std::string& key) {
    auto wait = [](JoinedTest& test, std::string asked) -> asio::awaitable<void> {
      Joined::Ask ask = [&test] { return test.question(); };
      const auto answer = co_await test.asks->answer(std::move(asked), std::move(ask));
      test.answers.push_back(answer ? static_cast<int>(get_int(*answer, "number").value_or(-1)) : 0);
    };
    asio::co_spawn(context, wait(*this, key), asio::detached);
    settle();
  }
  asio::awaitable<Joined::Answer> question() {
    const int number = ++asked;
    pending.push_back(std::make_unique<asio::steady_timer>(context, asio::steady_timer::time_point::max()));
    asio::steady_timer& mine = *pending.back();
    co_await mine.async_wait(kToken);
    if (fails) co_return fail(Errc::Unavailable, "no answer");
    json::object answer{{"number", number}};
    co_return answer;
  }
  void settle() {
    context.restart();
    context.poll();
  }
  // Answers the question with this number, from 1.
  void finish(int number) {
    pending[static_cast<std::size_t>(number - 1)]->cancel();
    settle();
  }

  asio::io_context context;
  Joined joined{context.get_executor(), std::chrono::hours(1)};
  Joined* asks = &joined;
  std::vector<std::unique_ptr<asio::steady_timer>> pending;
  int asked = 0;
  bool fails = false;
  std::vector<int> answers;  // numbers of the questions; 0: an error
};

TEST_F(JoinedTest, CallersDuringARequestShareTheNextOne) {
  for (int i = 0; i < 4; ++i) come("log");
  EXPECT_EQ(asked, 1);
  finish(1);
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(answers, ElementsAre(1));
  finish(2);
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(answers, ElementsAre(1, 2, 2, 2));
}

TEST_F(JoinedTest, ACallerNeverGetsTheAnswerToAnEarlierRequest) {
  come("log");
  come("log");
  finish(1);
  come("log");  // the second question is in progress
  finish(2);
  finish(3);
  EXPECT_THAT(answers, ElementsAre(1, 2, 3));
}

TEST_F(JoinedTest, RequestsWithAnotherKeyDoNotWait) {
  come("log of a");
  come("log of b");
  EXPECT_EQ(asked, 2);
  finish(2);
  finish(1);
  EXPECT_THAT(answers, UnorderedElementsAre(1, 2));
}

TEST_F(JoinedTest, AnUnansweredRequestDoesNotBlockLaterOnes) {
  Joined impatient(context.get_executor(), std::chrono::milliseconds(10));
  asks = &impatient;
  come("log");
  come("log");
  ASSERT_TRUE(run_until(context, [&] { return asked == 2; }));
  finish(2);
  EXPECT_THAT(answers, ElementsAre(2));
  come("log");  // no caller waits for the first question any more
  EXPECT_EQ(asked, 3);
  finish(1);
  finish(3);
  EXPECT_THAT(answers, ElementsAre(2, 1, 3));
}

TEST_F(JoinedTest, AnErrorGoesToAllCallersAndTheNextRequestIsMadeAgain) {
  for (int i = 0; i < 3; ++i) come("log");
  fails = true;
  finish(1);
  finish(2);
  EXPECT_THAT(answers, ElementsAre(0, 0, 0));
  fails = false;
  come("log");
  finish(3);
  EXPECT_THAT(answers, ElementsAre(0, 0, 0, 3));
}

}  // namespace
}  // namespace spark::workers
