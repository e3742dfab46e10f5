// Copies for jobs to come: told whether they will be in time, kept until they are asked for, and ended where
// a staging needs their room.
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

  json::array in_progress() const;  // names of datasets

  // Its room is reserved, before its turn; `evicted` there made way for it, which the result tells.
  static void note_room(Task& task, const json::object& reserved);
  static void tell_evicted(Task& task, Outcome& ended);
  // By when it has to be there, and how much too late it will be.
  void note_progress(Task& task) const;

  // A staging needs their room; ends once they have ended.
  asio::awaitable<void> end(TaskPtr staging, std::vector<std::string> datasets);

  // The copy is kept for its job by a soft lease; gives its id.
  asio::awaitable<Result<std::string>> keep(std::string dataset, std::uint64_t generation, Demand demand,
                                            std::string holder);
  // A job has asked for the dataset: what it was kept for.
  void taken_over(const std::string& dataset);
  // Copies that made way have no lease any more.
  void release_evicted(const Catalog& catalog);

 private:
  const Context& context_;
  const Activity& activity_;
  Leases& leases_;
  Turns& turns_;
};

}  // namespace spark::datasets
