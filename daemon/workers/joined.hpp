// Merges identical calls: a call requested by many at the same time is made once. An answer never predates
// its request: a request that arrives during a call waits for the next call. That one starts when the current
// call is answered, or after `patience`, so that a silent target does not delay others.
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

  // Calls with the same `key` are identical. `ask` is called for one of the requests that wait together.
  asio::awaitable<Answer> answer(std::string key, Ask ask);

 private:
  struct Question;
  using QuestionPtr = std::shared_ptr<Question>;
  struct Line {
    QuestionPtr asked, next;  // the call in progress, and the next one
  };

  asio::any_io_executor executor_;
  Duration patience_;
  std::map<std::string, Line> lines_;  // by key
};

}  // namespace spark::workers
