#include "daemon/workers/joined.hpp"

#include <optional>

#include "daemon/event.hpp"
#include "daemon/timer.hpp"

namespace spark::workers {

struct Joined::Question {
  explicit Question(const asio::any_io_executor& executor) : answered(executor), patience(executor) {}

  Event answered;  // notified when the answer has arrived
  Timer patience;  // the next call waits until it ends, or until the answer arrives
  std::optional<Answer> answer;
};

asio::awaitable<Joined::Answer> Joined::answer(std::string key, Ask ask) {
  Line& line = lines_[key];
  if (const QuestionPtr next = line.next) {
    co_await next->answered.wait();
    co_return *next->answer;
  }
  const auto question = std::make_shared<Question>(executor_);
  if (const QuestionPtr before = line.asked) {
    line.next = question;
    co_await before->patience.wait();
    line.next = nullptr;
  }
  line.asked = question;
  question->patience.expires_after(patience_);
  question->answer = co_await ask();
  question->answered.notify();
  question->patience.cancel();
  // A later call may be in progress, or already answered.
  const auto line_now = lines_.find(key);
  if (line_now != lines_.end() && line_now->second.asked == question) {
    line_now->second.asked = nullptr;
    if (!line_now->second.next) lines_.erase(line_now);
  }
  co_return *question->answer;
}

}  // namespace spark::workers
