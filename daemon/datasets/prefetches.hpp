// Copies for future jobs: predicts whether they will be in time, keeps them until they are requested, and
// ends them if a staging needs their space.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/datasets/turns.hpp"

namespace spark::datasets {

class Prefetches {
 public:
  Prefetches(const Context& context, const Activity& activity, Leases& leases, Turns& turns)
      : context_(context), activity_(activity), leases_(leases), turns_(turns) {}

  json::array in_progress() const;  // dataset names

  // Its space is reserved before its turn. `evicted` in `reserved` lists the copies evicted for it, which the
  // result reports.
  static void note_room(Task& task, const json::object& reserved);
  static void tell_evicted(Task& task, Outcome& ended);
  // When the copy must be ready, and how late it will be.
  void note_progress(Task& task) const;

  // A staging needs their space; returns once they have ended.
  asio::awaitable<void> end(TaskPtr staging, std::vector<std::string> datasets);

  // Keeps the copy for its job by a soft lease; returns the lease's ID.
  asio::awaitable<Result<std::string>> keep(std::string dataset, std::uint64_t generation, Demand demand,
                                            std::string holder);
  // A job has requested the dataset that was kept for it.
  void taken_over(const std::string& dataset);
  // Ends the leases of copies that were evicted.
  void release_evicted(const Catalog& catalog);

 private:
  const Context& context_;
  const Activity& activity_;
  Leases& leases_;
  Turns& turns_;
};

}  // namespace spark::datasets
