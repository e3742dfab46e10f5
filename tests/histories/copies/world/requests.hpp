// Requests of users to the daemon, and what they are told in the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tests/histories/copies/world/delivery.hpp"
#include "tests/histories/copies/world/simulated_daemon.hpp"
#include "tests/histories/copies/world/uses.hpp"

namespace spark::histories::copies {

// A path that `stage` printed: a program may open it later.
struct Printed {
  std::string dataset;
  std::filesystem::path path;
};

// "imagenet and text"
inline std::string names_in(const std::vector<std::string>& datasets) {
  return join(datasets, " and ");
}

struct StageWish {
  std::vector<std::string> datasets;
  enum class Holder { None, Job, Unseen } holder = Holder::None;  // Unseen: a process in a container, pid 0
  bool is_prefetch = false, accepts_source = false;
  std::optional<std::chrono::seconds> lease{}, by{};
};

// What was true of a dataset when a request began.
struct Before {
  std::uint64_t version = 0;  // of the source
  bool is_mounted = false;    // the source; false too if that changed since
  Joined joined{};
  bool is_known = false;    // the product had a copy of it
  bool is_current = false;  // that copy is good and equals the source
  std::uint64_t newest = 0;
  bool is_damaged = false;         // the newest copy
  std::map<ino_t, Bytes> files{};  // of the newest copy
  std::size_t generations = 0;
};

class Requests {
 public:
  Requests(Scene& scene, Uses& uses) : scene_(scene), uses_(uses) {}

  void stage(SimulatedDaemon& daemon, const StageWish& wish);
  void verify(SimulatedDaemon& daemon, const std::string& dataset);
  void evict(SimulatedDaemon& daemon, const std::string& dataset);
  void copy(SimulatedDaemon& daemon, const std::string& dataset, bool verify);
  void cancel(std::size_t number);
  // The requests in progress are affected.
  void note_unmounted(const std::string& disk);
  void note_trouble();
  // Their callers wait for nothing any more.
  void daemon_ended() { pending_.clear(); }

  std::size_t running() const { return pending_.size(); }
  std::string names() const;  // of those in progress, for a message
  const std::vector<Printed>& printed() const { return printed_; }
  // How the last request for this ended: "ok", or the error; empty: none has ended.
  const std::string& last_result(const std::string& verb, const std::string& dataset) {
    return results_[verb + " " + dataset];
  }

 private:
  struct Pending {
    std::string verb;
    std::vector<std::string> datasets;
    StageWish wish;
    std::shared_ptr<Process> process;  // the holder of its lease
    std::shared_ptr<Job> job;
    SteadyTime from{};
    std::map<std::string, Before> before;  // by dataset
    std::uint64_t faults = 0;              // of workers, so far
    std::uint64_t lease_faults = 0;        // see Fate::faulty_leases
    bool is_alone = true;                  // no other request at the same time
    bool was_troubled = false, is_only_state_full = false, is_verified = false;
  };
  using PendingPtr = std::shared_ptr<Pending>;
  PendingPtr add(std::string verb, std::vector<std::string> datasets);
  bool is_current(const std::string& dataset) const;
  void join_others(const std::string& dataset, Joined& joined) const;
  void follow(SimulatedDaemon& daemon, const PendingPtr& pending, Result<std::shared_ptr<Job>> job);
  asio::awaitable<void> wait_for(PendingPtr pending);
  asio::awaitable<void> run_copy(SimulatedDaemon& daemon, PendingPtr pending);
  // outcomes.cpp
  void ended(const PendingPtr& pending, const Result<json::object>& result);
  void staged(const Pending& pending, const json::object& dataset);
  void check_copied_again(const Pending& pending, const json::object& dataset);
  void check_evicted(const Pending& pending, const json::object& dataset);
  void begin_use(const Pending& pending, const json::object& dataset);
  void verified(const Pending& pending, const Result<json::object>& result);
  void check_error(const Pending& pending, const Error& error);

  Scene& scene_;
  Uses& uses_;
  std::vector<PendingPtr> pending_;
  std::vector<Printed> printed_;
  std::map<std::string, std::string> results_;  // by verb and dataset
  // By dataset: the generation that its drive did not give to a verification, which counts as damaged.
  std::map<std::string, std::uint64_t> unread_;
};

}  // namespace spark::histories::copies
