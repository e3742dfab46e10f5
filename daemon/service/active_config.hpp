// The configuration in force: which one it is, what another one would change, and the reload that puts it in
// force.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <functional>

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
  // Called after each reload that worked. The volumes have the new configuration by then; everything else
  // that depends on it takes it over here.
  using OnChange = std::function<void()>;

  // `config` was read from `file`, which each reload reads again.
  ActiveConfig(boost::asio::any_io_executor executor, std::filesystem::path file, config::Config config,
               const Clock& clock, Notifier& notifier, workers::Runner& runner, volumes::VolumeSet& volumes,
               OnChange on_change);

  const config::Config& current() const { return config_; }
  WallTime loaded_at() const { return loaded_at_; }
  bool last_reload_worked() const { return last_reload_worked_; }

  // Answers what changed. A file with errors changes nothing.
  boost::asio::awaitable<Result<json::object>> reload();
  // The same, with systemd told when it begins and ends. During a reload the signal is remembered, and the
  // file is read again afterwards.
  boost::asio::awaitable<void> reload_on_signal();

  // What a reload would change: with the file as it is now, or with the text in `request`.
  boost::asio::awaitable<Result<json::object>> plan(json::object request);

 private:
  boost::asio::any_io_executor executor_;
  std::filesystem::path file_;
  config::Config config_;
  WallTime loaded_at_;
  bool last_reload_worked_ = true;
  bool is_reloading_ = false;
  bool reload_again_ = false;          // SIGHUP came during a reload
  workers::ConcurrencyLimiter plans_;  // one at a time, since each may keep a processor busy
  const Clock& clock_;
  Notifier& notifier_;
  workers::Runner& runner_;
  volumes::VolumeSet& volumes_;
  OnChange on_change_;
};

}  // namespace spark
