// The nodes of the jobs that staged on this host: they may ask it, although no configuration names them.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace spark::fleet {

struct JobNode {
  std::string name;
  std::vector<std::string> addresses;  // that the staging found; empty: it did not look the name up
  bool operator==(const JobNode&) const = default;
};

class JobNodes {
 public:
  using Noted = std::function<std::vector<JobNode>()>;  // in the order of their jobs; any thread
  using Resolve = std::function<Result<std::vector<std::string>>(const std::string& name)>;
  JobNodes(Noted noted, Resolve resolve) : noted_(std::move(noted)), resolve_(std::move(resolve)) {}

  // Whether this is the address of a node. Never waits for a name service: an unknown address is noted, for
  // wait_for_stranger(). Any thread.
  bool has(const std::string& address);

  // The other calls are for one thread. Looks up the newest name that has no address yet; waits for the name
  // service. A name that led nowhere is looked up again if an unknown address has asked since, and then
  // rarely: any host can connect, with or without the key. False: there is no such name.
  bool look_up_next(SteadyTime now);
  // Returns once an unknown address has asked since the last call, or after `longest`.
  void wait_for_stranger(std::chrono::milliseconds longest);

 private:
  struct Search {
    SteadyTime at;
    bool has_found;
  };

  Noted noted_;
  Resolve resolve_;
  std::map<std::string, Search> searches_;  // by name
  std::mutex mutex_;
  std::condition_variable stranger_asked_;
  bool is_stranger_here_ = false;
  SteadyTime stranger_at_{};
  std::set<std::string> found_;  // addresses
};

}  // namespace spark::fleet
