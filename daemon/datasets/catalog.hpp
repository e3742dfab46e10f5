// The cache's catalog as this daemon knows it, asked of workers, and its recovery after the daemon's start.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

class Catalog {
 public:
  Catalog(const Context& context, const Activity& activity) : context_(context), activity_(activity) {}

  json::object request() const;  // that every call on the cache begins with

  // Datasets that can't be recovered are listed with the reason; what fails here is opening the cache.
  asio::awaitable<Result<>> recover();
  asio::awaitable<void> refresh();
  void could_not_open(const Error& why);

  // {"datasets", "usage"}. Unavailable until it was looked over after the daemon's start; its error while it
  // can't be read.
  Result<const json::object*> known() const;
  Result<std::vector<std::string>> names() const;
  Result<> check_listed(const std::string& dataset) const;  // NotFound, with the name that was meant

 private:
  asio::awaitable<void> look_over();
  void tell_writable();

  const Context& context_;
  const Activity& activity_;
  std::optional<Result<json::object>> answer_;  // the newest; none: not asked yet
  bool is_looked_over_ = false;                 // it is as the disk is, since the daemon's start
  std::string writable_because_;  // why jobs can change the copies, as it was told; empty: they can't
  std::uint64_t asked_ = 0, answered_ = 0;  // refreshes; the one that answer_ is of
};

}  // namespace spark::datasets
