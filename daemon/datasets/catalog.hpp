// The daemon's view of the cache's catalog, read by workers, and the recovery of the cache after the daemon's
// start.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/event.hpp"
#include "daemon/timer.hpp"

namespace spark::datasets {

class Catalog {
 public:
  Catalog(const Context& context, const Activity& activity)
      : context_(context), activity_(activity), changed_(context.executor) {}

  json::object request() const;  // the first part of every request about the cache

  // Datasets that can't be recovered are listed with the reason; only opening the cache can fail here. Waits
  // while the cache is claimed.
  asio::awaitable<Result<>> recover();
  // For a change of the whole cache, whose files a recovery would lock or delete. False while one runs, or is
  // about to at the daemon's start.
  bool claim();
  void release();
  // A claim may succeed now, or at wake_claim().
  asio::awaitable<void> next_change() { co_await changed_.wait(); }
  void wake_claim() { changed_.notify(); }
  asio::awaitable<void> refresh();
  void could_not_open(const Error& why);

  // {"datasets", "usage"}. Unavailable until the cache was checked after the daemon's start; an error while
  // it can't be read.
  Result<const json::object*> known() const;
  bool is_being_opened() const { return !is_looked_over_ && (!answer_ || *answer_); }
  // For a request: what the drive says now, if the last answer was an error or is old. Requests share one
  // look and wait for a short time only.
  asio::awaitable<void> look_again();
  Result<std::vector<std::string>> names() const;
  // The dataset's copies as last listed, newest first; none while the catalog is not known.
  std::vector<json::object> generations_of(const std::string& dataset) const;
  Result<> check_listed(const std::string& dataset) const;  // NotFound suggests the most similar name

 private:
  asio::awaitable<void> look_over();
  asio::awaitable<void> look();
  void tell_writable();

  const Context& context_;
  const Activity& activity_;
  std::optional<Result<json::object>> answer_;  // the newest; none before the first request
  SteadyTime answered_at_{};
  bool is_looking_ = false;                      // for requests
  std::vector<std::shared_ptr<Timer>> waiting_;  // of those requests
  bool is_looked_over_ = false;   // it has been compared with the disk since the daemon's start
  std::string writable_because_;  // why jobs can change the copies, as logged; empty means they can't
  std::uint64_t asked_ = 0, answered_ = 0;  // counts of refreshes: started, and the one that produced answer_
  unsigned recoveries_ = 0;                 // that run
  bool is_claimed_ = false;
  Event changed_;  // whether it may be claimed, or recovered
};

}  // namespace spark::datasets
