// What is under way with which dataset, by its name.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "daemon/datasets/task.hpp"
#include "daemon/datasets/totals.hpp"

namespace spark::datasets {

struct Activity {
  std::map<std::string, TaskPtr> tasks;       // being staged
  std::uint64_t newest_task = 0;              // its number
  std::map<std::string, std::string> failed;  // why its last staging failed
  std::multiset<std::string> wanted;          // by stage jobs: not evicted before their leases begin
  std::set<std::string> early_leases;         // ids, of stage jobs that have not ended: no training runs yet
  std::set<std::string> evicting;
  Totals totals;
};

}  // namespace spark::datasets
