// A worker that runs until its request changes: replaced then, and, with back-off, whenever it fails.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::workers {

class Supervisor {
 public:
  struct Work {
    std::string verb, subject;
    std::string trouble;  // "peers are not served"
    Duration longest_retry;
    std::function<void()> on_report{};
  };

  Supervisor(asio::any_io_executor executor, Runner& runner, Work work);

  // True if the request has changed; empty means no worker.
  bool apply(json::object request);
  const json::object& request() const { return request_; }
  const json::object& last() const { return last_; }            // report of the current worker
  const std::optional<Error>& error() const { return error_; }  // of the last worker, until one reports

 private:
  asio::awaitable<void> run(std::uint64_t turn, json::object request);

  asio::any_io_executor executor_;
  Runner& runner_;
  Work work_;
  json::object request_;
  std::uint64_t turn_ = 0;  // number of the request
  Cancellation cancellation_;
  json::object last_;
  std::optional<Error> error_;
};

}  // namespace spark::workers
