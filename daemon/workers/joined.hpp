// The same question, asked by many at once, is asked once. No answer is older than the question that it is
// for: who comes while one is on its way waits for the next one, which is asked when that has been answered,
// or after `patience`: a question that a target leaves unanswered holds up no other.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::workers {

namespace asio = boost::asio;

class Joined {
 public:
  using Answer = Result<json::object>;
  using Ask = std::function<asio::awaitable<Answer>()>;

  Joined(asio::any_io_executor executor, Duration patience)
      : executor_(std::move(executor)), patience_(patience) {}

  // `key`: what makes two questions the same. `ask` is called for one of those that wait together.
  asio::awaitable<Answer> answer(std::string key, Ask ask);

 private:
  struct Question;
  using QuestionPtr = std::shared_ptr<Question>;
  struct Line {
    QuestionPtr asked, next;  // the last one on its way, and what is asked after that
  };

  asio::any_io_executor executor_;
  Duration patience_;
  std::map<std::string, Line> lines_;  // by key
};

}  // namespace spark::workers
