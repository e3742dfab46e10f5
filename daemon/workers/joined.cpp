#include "daemon/workers/joined.hpp"

#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "daemon/token.hpp"

namespace spark::workers {

struct Joined::Question {
  explicit Question(const asio::any_io_executor& executor)
      : answered(executor, asio::steady_timer::time_point::max()) {}

  asio::steady_timer answered;  // cancelled when the answer is there
  std::optional<Answer> answer;
};

asio::awaitable<Joined::Answer> Joined::answer(std::string key, Ask ask) {
  Line& line = lines_[key];
  if (const QuestionPtr next = line.next) {
    co_await next->answered.async_wait(kToken);
    co_return *next->answer;
  }
  const auto question = std::make_shared<Question>(executor_);
  if (const QuestionPtr before = line.asked) {
    line.next = question;
    co_await before->answered.async_wait(kToken);
    line.next = nullptr;
  }
  line.asked = question;
  question->answer = co_await ask();
  line.asked = nullptr;
  question->answered.cancel();
  if (!line.next) lines_.erase(key);
  co_return *question->answer;
}

}  // namespace spark::workers
