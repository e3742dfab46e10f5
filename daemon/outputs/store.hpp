// Stage-out requests that have not ended, in the state folder: a restarted daemon resumes them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/outputs/context.hpp"
#include "daemon/outputs/stage_out_request.hpp"

namespace spark::outputs {

class Store {
 public:
  explicit Store(const Context& context) : context_(context) {}

  // Durable when it returns.
  asio::awaitable<Result<>> save(StageOutRequest request);
  asio::awaitable<void> forget(std::string id);
  // All saved requests that were not forgotten. Invalid files are logged and left unchanged.
  asio::awaitable<Result<std::vector<StageOutRequest>>> load();

 private:
  std::string file_of(const std::string& id) const;

  const Context& context_;
};

}  // namespace spark::outputs
