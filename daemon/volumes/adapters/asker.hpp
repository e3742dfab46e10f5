// Questions of one volume to workers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

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

  asio::awaitable<Result<json::object>> ask(std::string verb, json::object request, Duration deadline);
  // The same of what changes sysfs or the mount table: what was seen of them before is old.
  asio::awaitable<Result<json::object>> act(std::string verb, json::object request, Duration deadline);
  // The same, together with other volumes that ask it; `subject` is whose fault it is if it fails.
  asio::awaitable<Result<json::object>> act_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline);
  // A worker that was asked about the subject was abandoned and still waits in the kernel.
  bool is_stuck(const std::string& subject) const { return runner_.abandoned().contains(subject); }

  workers::Runner& runner() { return runner_; }
  HostSnapshot& snapshot() { return snapshot_; }
  const std::string& subject() const { return subject_; }

 private:
  workers::Runner& runner_;
  HostSnapshot& snapshot_;
  std::string subject_;
};

}  // namespace spark::volumes
