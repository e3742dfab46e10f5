// Calls of one volume to workers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

class Asker {
 public:
  Asker(workers::Runner& runner, HostSnapshot& snapshot, const std::string& volume)
      : runner_(runner), snapshot_(snapshot), subject_("volume " + volume) {}

  asio::awaitable<Result<json::object>> ask(std::string verb, json::object request, Duration deadline) {
    return runner_.ask(subject_, std::move(verb), std::move(request), deadline);
  }
  // The same for calls that do not access the device: if they hang, that says nothing about it.
  asio::awaitable<Result<json::object>> ask_beside(const std::string& what, std::string verb,
                                                   json::object request, Duration deadline) {
    return runner_.ask(beside(what), std::move(verb), std::move(request), deadline);
  }
  // The same for calls that change sysfs or the mount table: the snapshot is discarded afterwards.
  asio::awaitable<Result<json::object>> act(std::string verb, json::object request, Duration deadline) {
    auto answer = co_await ask(std::move(verb), std::move(request), deadline);
    snapshot_.forget();
    co_return answer;
  }
  // The same, as long as it takes, in a worker of its own.
  asio::awaitable<Result<json::object>> act_patiently(std::string verb, json::object request) {
    workers::Call call{std::move(verb), subject_, std::move(request)};
    auto answer = co_await runner_.run(std::move(call));
    snapshot_.forget();
    co_return answer;
  }
  // The same, shared with other volumes that make the same call; `subject` is named if it fails.
  asio::awaitable<Result<json::object>> act_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline) {
    auto answer =
        co_await runner_.ask_jointly(std::move(subject), std::move(verb), std::move(request), deadline);
    snapshot_.forget();
    co_return answer;
  }
  // An abandoned worker with this subject still waits in the kernel.
  bool is_stuck(const std::string& subject) const { return runner_.abandoned().contains(subject); }
  bool is_stuck_beside(const std::string& what) const { return is_stuck(beside(what)); }

  workers::Runner& runner() { return runner_; }
  HostSnapshot& snapshot() { return snapshot_; }
  const std::string& subject() const { return subject_; }

 private:
  std::string beside(const std::string& what) const { return what + " of " + subject_; }

  workers::Runner& runner_;
  HostSnapshot& snapshot_;
  std::string subject_;
};

}  // namespace spark::volumes
