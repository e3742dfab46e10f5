// Watches each target that a volume of the configuration in force uses.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/discovery/target_watch.hpp"

namespace spark::discovery {

class WatchSet {
 public:
  WatchSet(asio::any_io_executor executor, MakeActions make_actions, const Clock& clock,
           TargetWatch::OnChange on_change);

  // Starts new or changed watches, and ends removed ones.
  void apply(const config::Config& config);
  void stop();
  void heard(const Uevent& event);

  // "targets" in `status --json`; docs/api.md.
  json::array to_json(const config::Config& config) const;

 private:
  std::shared_ptr<TargetWatch> make(const config::Target& target);
  void leave_strays();
  bool is_shared(const std::string& controller) const;

  asio::any_io_executor executor_;
  MakeActions make_actions_;
  const Clock& clock_;
  TargetWatch::OnChange on_change_;
  std::map<std::string, std::shared_ptr<TargetWatch>> watches_;  // by target name
  bool has_left_strays_ = false;
};

}  // namespace spark::discovery
