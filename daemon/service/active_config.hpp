// The configuration in force, a preview of another one, and the reload that puts a new one in force.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/systemd.hpp"
#include "daemon/volumes/volume/volume_set.hpp"
#include "daemon/workers/concurrency_limiter.hpp"
#include "daemon/workers/runner.hpp"

namespace spark {

class ActiveConfig {
 public:
  // Called after each successful reload. The volumes already have the new configuration; all other parts that
  // depend on it update here.
  using OnChange = std::function<void()>;

  // Why another configuration can't be put in force now.
  using Check = std::function<Result<>(const config::Config& wanted)>;

  // `config` was read from `file`, which each reload reads again.
  ActiveConfig(boost::asio::any_io_executor executor, std::filesystem::path file, config::Config config,
               const Clock& clock, Notifier& notifier, workers::Runner& runner, volumes::VolumeSet& volumes,
               Check check, OnChange on_change);

  const config::Config& current() const { return config_; }
  WallTime loaded_at() const { return loaded_at_; }
  // Why the file could not be used when it was read last; empty: it could.
  const std::string& problem() const { return problem_; }

  // Returns the changes. A file with errors changes nothing.
  boost::asio::awaitable<Result<json::object>> reload();
  // The same, with notifications to systemd at its beginning and end. A signal during a reload is remembered,
  // and the file is read again afterwards.
  boost::asio::awaitable<void> reload_on_signal();

  // The changes that a reload would make: with the current file, or with the text in `request`.
  boost::asio::awaitable<Result<json::object>> plan(json::object request, uid_t user);

 private:
  boost::asio::any_io_executor executor_;
  std::filesystem::path file_;
  config::Config config_;
  WallTime loaded_at_;
  std::string problem_;
  bool is_reloading_ = false;
  bool reload_again_ = false;                           // SIGHUP came during a reload
  std::map<uid_t, workers::ConcurrencyLimiter> plans_;  // of each user one at a time: it may keep a CPU busy
  const Clock& clock_;
  Notifier& notifier_;
  workers::Runner& runner_;
  volumes::VolumeSet& volumes_;
  Check check_;
  OnChange on_change_;
};

}  // namespace spark
